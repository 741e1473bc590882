#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "dialects/imagenet.h"
#include "dialects/native_command.h"
#include "methods/settings.h"

namespace cohort::dialects {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Machine machine_with(int gpus, int cores = 2, int processes = 1) {
  Machine machine;
  machine.gpus = gpus;
  machine.cores = cores;
  machine.processes = processes;
  machine.models = {"resnet18", "resnet50", "vgg16"};
  return machine;
}

ImagenetFlags flags_for(std::int64_t batch_size = 256) {
  ImagenetFlags flags;
  flags.folder = "../../imagenet";
  flags.arch = "resnet50";
  flags.epochs = 1;
  flags.batch_size = batch_size;
  return flags;
}

ImagenetFlags distributed_flags(std::int64_t batch_size) {
  ImagenetFlags flags = flags_for(batch_size);
  flags.dist_url = "tcp://127.0.0.1:2345";
  flags.multiprocessing_distributed = true;
  flags.world_size = 1;
  flags.rank = 0;
  return flags;
}

std::string native(const ImagenetFlags& flags, const Machine& machine) {
  return shell_line(native_command(translate(flags, machine).config));
}

std::string imagenet_refusal(const ImagenetFlags& flags, const Machine& machine = machine_with(0)) {
  try {
    translate(flags, machine);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "nothing was refused";
}

// The study's six commands, on its machine (4 GPUs) and on one without any.
TEST(ImagenetStudy, SingleGpu) {
  ImagenetFlags flags = flags_for();
  flags.gpu = 0;
  EXPECT_EQ(native(flags, machine_with(4)),
            "cohort train --model resnet50 --data image-folder --device cuda:0 "
            "--data-dir ../../imagenet --batch 256 --image-size 224 --augment resized-crop "
            "--loader-threads 4 --lr 0.1 --weight-decay 1e-04 --schedule step --epochs 1 "
            "--eval-batch 256 --record-every 10");
  EXPECT_EQ(native(flags, machine_with(0)),
            "cohort train --model resnet50 --data image-folder "
            "--data-dir ../../imagenet --batch 32 --image-size 224 --augment resized-crop "
            "--loader-threads 4 --lr 0.1 --weight-decay 1e-04 --accumulate 8 --schedule step "
            "--epochs 1 --eval-batch 32 --record-every 10");
  flags.batch_size = 128;
  EXPECT_THAT(native(flags, machine_with(4)), HasSubstr("--batch 128"));
  EXPECT_THAT(native(flags, machine_with(0)), HasSubstr("--accumulate 4"));
}

TEST(ImagenetStudy, DataParallel) {
  EXPECT_EQ(native(flags_for(), machine_with(4)),
            "cohort train --model resnet50 --data image-folder --method data-parallel "
            "--device cuda --workers 4 --data-dir ../../imagenet --batch 256 --image-size 224 "
            "--augment resized-crop --lr 0.1 --weight-decay 1e-04 "
            "--schedule step --epochs 1 --eval-batch 64 --record-every 10");
  ImagenetFlags flags = flags_for(1024);
  flags.workers = 16;
  EXPECT_EQ(native(flags, machine_with(0)),
            "cohort train --model resnet50 --data image-folder --method data-parallel "
            "--workers 2 --data-dir ../../imagenet --image-size 224 "
            "--augment resized-crop --loader-threads 8 --lr 0.1 --weight-decay 1e-04 "
            "--accumulate 16 --schedule step --epochs 1 --eval-batch 32 --record-every 10");
}

TEST(ImagenetStudy, Distributed) {
  ImagenetFlags flags = distributed_flags(1024);
  flags.workers = 16;
  EXPECT_EQ(native(flags, machine_with(4)),
            "cohort train --model resnet50 --data image-folder --method all-reduce "
            "--device cuda --workers 4 --engine nccl --data-dir ../../imagenet --batch 256 "
            "--image-size 224 --augment resized-crop --loader-threads 4 --lr 0.1 "
            "--weight-decay 1e-04 --schedule step --epochs 1 --eval-batch 256 --record-every 10");
  EXPECT_EQ(native(distributed_flags(256), machine_with(0)),
            "cohort train --model resnet50 --data image-folder --method all-reduce "
            "--workers 2 --data-dir ../../imagenet --batch 32 --image-size 224 "
            "--augment resized-crop --loader-threads 2 --lr 0.1 --weight-decay 1e-04 "
            "--accumulate 4 --schedule step --epochs 1 --eval-batch 32 --record-every 10");
}

TEST(ImagenetMode, FollowsTheExamplesRules) {
  const Machine machine = machine_with(4);
  EXPECT_EQ(translate(flags_for(), machine).mode, ImagenetMode::kDataParallel);
  ImagenetFlags flags = flags_for();
  flags.gpu = 2;
  Translation single = translate(flags, machine);
  EXPECT_EQ(single.mode, ImagenetMode::kSingle);
  EXPECT_EQ(single.config.method, "local");
  EXPECT_EQ(single.config.device, "cuda:2");
  EXPECT_THAT(single.gpus, ElementsAre(2));
  EXPECT_THAT(single.notes, Contains(HasSubstr("You have chosen a specific GPU. This will "
                                               "completely disable data parallelism.")));
  // In the example spawned processes get GPUs of their own, whatever --gpu says.
  flags.multiprocessing_distributed = true;
  const Translation distributed = translate(flags, machine);
  EXPECT_EQ(distributed.mode, ImagenetMode::kDistributed);
  EXPECT_EQ(distributed.config.workers, 4);
  EXPECT_EQ(distributed.config.device, "cuda");
  EXPECT_THAT(distributed.gpus, ElementsAre(0, 1, 2, 3));
}

TEST(ImagenetMode, WorksWithoutGpus) {
  ImagenetFlags flags = flags_for();
  flags.gpu = 0;
  const Translation single = translate(flags, machine_with(0));
  EXPECT_EQ(single.config.device, "cpu");
  EXPECT_TRUE(single.gpus.empty());
  EXPECT_THAT(single.notes, Contains(HasSubstr("no GPU here")));
  const Translation parallel = translate(flags_for(), machine_with(0, 6));
  EXPECT_EQ(parallel.config.workers, 6);
  EXPECT_EQ(parallel.config.engine, config::RunConfig().engine);
  const Translation distributed = translate(distributed_flags(256), machine_with(0, 8));
  EXPECT_EQ(distributed.config.workers, 8);
  EXPECT_EQ(distributed.config.batch, 32);
  EXPECT_EQ(distributed.config.accumulate, 1);
  EXPECT_THAT(distributed.notes, Contains(HasSubstr("shared memory")));
  EXPECT_THAT(distributed.notes, Contains(HasSubstr("8 workers")));
}

TEST(ImagenetMode, NoAccelIsAMachineWithoutGpus) {
  ImagenetFlags flags = flags_for();
  flags.no_accel = true;
  const Translation result = translate(flags, machine_with(4, 2));
  EXPECT_EQ(result.config.device, "cpu");
  EXPECT_EQ(result.config.workers, 2);
  EXPECT_THAT(result.notes, Contains(HasSubstr("--no-accel")));
}

TEST(ImagenetMode, ChoosesTheEngine) {
  ImagenetFlags flags = distributed_flags(256);
  EXPECT_EQ(translate(flags, machine_with(2)).config.engine, "nccl");
  EXPECT_EQ(translate(flags, machine_with(1)).config.engine, config::RunConfig().engine);
  EXPECT_EQ(translate(flags, machine_with(0)).config.engine, config::RunConfig().engine);
  flags.dist_backend = "gloo";
  EXPECT_EQ(translate(flags, machine_with(2)).config.engine, config::RunConfig().engine);
  flags.world_size = 3;
  EXPECT_EQ(translate(flags, machine_with(0, 2, 3)).config.engine, "mpi");
}

TEST(ImagenetNodes, AreTheProcessesOfMpirun) {
  ImagenetFlags flags = distributed_flags(256);
  flags.world_size = 3;
  const Translation result = translate(flags, machine_with(0, 4, 3));
  EXPECT_EQ(result.config.workers, 12);
  EXPECT_EQ(result.config.batch * result.config.accumulate, 64);  // 256 is for each node
  flags.world_size = -1;
  EXPECT_EQ(translate(flags, machine_with(0, 4, 3)).config.workers, 12);
  flags.multiprocessing_distributed = false;
  flags.world_size = 3;
  const Translation plain = translate(flags, machine_with(0, 4, 3));
  EXPECT_EQ(plain.config.workers, 3);
  EXPECT_EQ(plain.config.batch * plain.config.accumulate, 256);
  flags.gpu = 1;
  const Translation with_gpu = translate(flags, machine_with(4, 4, 3));
  EXPECT_EQ(with_gpu.config.workers, 3);
  EXPECT_EQ(with_gpu.config.device, "cuda:1");
  EXPECT_EQ(with_gpu.config.batch, 64);
}

TEST(ImagenetNodes, MustHaveBeenStarted) {
  ImagenetFlags flags = flags_for();
  flags.world_size = 4;
  EXPECT_THAT(imagenet_refusal(flags), HasSubstr("mpirun -n 4 cohort imagenet"));
  EXPECT_THAT(imagenet_refusal(flags, machine_with(0, 2, 3)),
              HasSubstr("mpirun started 3 processes"));
  flags.world_size = -1;
  EXPECT_THAT(imagenet_refusal(flags, machine_with(0, 2, 3)), HasSubstr("--world-size 3"));
  flags.world_size = 2;
  flags.rank = 2;
  EXPECT_THAT(imagenet_refusal(flags, machine_with(0, 2, 2)), HasSubstr("--rank 2"));
}

TEST(ImagenetNodes, FindEachOtherAsPyTorchsDo) {
  ImagenetFlags flags = flags_for();
  flags.world_size = 2;
  flags.rank = 1;
  EXPECT_THAT(imagenet_refusal(flags), HasSubstr("--dist-url tcp://HOST:PORT"));
  flags.dist_url = "tcp://10.0.0.1:2345";
  const Translation by_flags = translate(flags, machine_with(0));
  EXPECT_EQ(by_flags.config.engine, "tcp");
  EXPECT_EQ(by_flags.config.meet, "10.0.0.1:2345");
  EXPECT_EQ(by_flags.config.workers, 2);
  EXPECT_EQ(std::pair(by_flags.nodes, by_flags.node), std::pair(2, 1));
  Machine started = machine_with(0);  // by torchrun
  started.torchrun = true;
  started.world_size = 4;
  started.rank = 3;
  const Translation by_torchrun = translate(flags_for(), started);
  EXPECT_EQ(by_torchrun.config.engine, "tcp");
  EXPECT_EQ(by_torchrun.config.meet, "");
  EXPECT_EQ(std::pair(by_torchrun.nodes, by_torchrun.node), std::pair(4, 3));
  flags.dist_url = "file:///tmp/meeting";
  EXPECT_THAT(imagenet_refusal(flags), HasSubstr("tcp://HOST:PORT or env://"));
}

TEST(ImagenetNodes, AreCountedByTheEnvironmentIfAsked) {
  ImagenetFlags flags = flags_for();
  flags.dist_url = "env://";
  EXPECT_THAT(imagenet_refusal(flags), HasSubstr("WORLD_SIZE"));
  Machine machine = machine_with(0, 2, 2);
  machine.world_size = 2;
  EXPECT_EQ(translate(flags, machine).mode, ImagenetMode::kDistributed);
  machine.processes = 1;
  EXPECT_THAT(imagenet_refusal(flags, machine), HasSubstr("mpirun -n 2"));
  flags.world_size = 1;
  EXPECT_EQ(translate(flags, machine).mode, ImagenetMode::kDataParallel);
}

TEST(ImagenetBatch, IsSplitIntoPassesOnACpuOnly) {
  ImagenetFlags flags = flags_for();
  flags.gpu = 0;
  struct Case {
    std::int64_t batch_size, pass, passes;
  };
  for (const Case& each : {Case{1, 1, 1}, Case{32, 32, 1}, Case{33, 11, 3}, Case{100, 25, 4},
                           Case{256, 32, 8}, Case{257, 29, 9}, Case{62, 31, 2}}) {
    flags.batch_size = each.batch_size;
    const Translation result = translate(flags, machine_with(0));
    EXPECT_EQ(result.config.batch, each.pass) << each.batch_size;
    EXPECT_EQ(result.config.accumulate, each.passes) << each.batch_size;
    const config::RunConfig on_gpu = translate(flags, machine_with(1)).config;
    EXPECT_EQ(on_gpu.batch, each.batch_size);
    EXPECT_EQ(on_gpu.accumulate, 1);
  }
  flags.batch_size = 257;  // prime: 9 passes of 29 are 261
  EXPECT_THAT(translate(flags, machine_with(0)).notes, Contains(HasSubstr("rounded up to 261")));
  flags.batch_size = 256;
  EXPECT_THAT(translate(flags, machine_with(0)).notes, Not(Contains(HasSubstr("rounded"))));
}

TEST(ImagenetBatch, LosesItsRemainderAmongProcesses) {
  const Translation result = translate(distributed_flags(50), machine_with(3));
  EXPECT_EQ(result.config.batch, 16);
  EXPECT_THAT(result.notes, Contains(HasSubstr("16 of --batch-size 50")));
  EXPECT_THAT(imagenet_refusal(distributed_flags(2), machine_with(3)), HasSubstr("--batch-size 2"));
}

TEST(ImagenetSchedule, DropsEveryThirtyEpochs) {
  ImagenetFlags flags = flags_for();
  flags.epochs = 90;
  const config::RunConfig whole = translate(flags, machine_with(0)).config;
  EXPECT_EQ(whole.schedule, "step");
  EXPECT_EQ(whole.lr_step_size, 30);
  EXPECT_EQ(whole.lr_gamma, 0.1);
  EXPECT_EQ(whole.momentum, 0.9);
  EXPECT_FALSE(whole.no_norm_decay);
}

TEST(ImagenetSchedule, BeginsInTheMiddleWithStartEpoch) {
  ImagenetFlags flags = flags_for();
  flags.epochs = 90;
  flags.start_epoch = 45;
  const config::RunConfig config = translate(flags, machine_with(0)).config;
  EXPECT_EQ(config.epochs, 90);
  EXPECT_EQ(config.start_epoch, 45);
  EXPECT_EQ(config.schedule, "step");  // of the epoch's number: lr * 0.1 ** (epoch // 30)
  EXPECT_EQ(config.lr, 0.1);
  flags.start_epoch = 90;
  EXPECT_THAT(imagenet_refusal(flags), HasSubstr("--start-epoch 90"));
  flags.resume = "runs/a";  // whose epoch counts instead
  EXPECT_EQ(translate(flags, machine_with(0)).config.epochs, 90);
}

TEST(ImagenetData, OfDummyAreGenerated) {
  ImagenetFlags flags;
  flags.dummy = true;
  config::RunConfig config = translate(flags, machine_with(0)).config;
  EXPECT_EQ(config.data, "synthetic");
  EXPECT_EQ(config.synthetic_shape, "3x224x224");
  EXPECT_EQ(config.synthetic_classes, 1000);
  EXPECT_EQ(config.train_size, 1281167);
  EXPECT_EQ(config.test_size, 50000);
  EXPECT_EQ(config.augment, "auto");
  EXPECT_EQ(config.image_size, 0);
  flags.train_size = 64;
  flags.test_size = 8;
  flags.image_size = 32;
  config = translate(flags, machine_with(0)).config;
  EXPECT_EQ(config.synthetic_shape, "3x32x32");
  EXPECT_EQ(config.train_size, 64);
  EXPECT_EQ(config.test_size, 8);
}

TEST(ImagenetPretrained, NeedsAFile) {
  ImagenetFlags flags = flags_for();
  flags.pretrained = true;
  EXPECT_THAT(imagenet_refusal(flags), HasSubstr("resnet50.safetensors"));
  Machine machine = machine_with(0);
  machine.weights = "/data/resnet50.safetensors";
  const Translation result = translate(flags, machine);
  EXPECT_EQ(result.config.init, "/data/resnet50.safetensors");
  EXPECT_THAT(imagenet_opening(flags, result),
              ElementsAre("=> using pre-trained model 'resnet50'"));
}

TEST(ImagenetOpening, NamesTheGpuAndTheModel) {
  ImagenetFlags flags = flags_for();
  flags.gpu = 0;
  EXPECT_THAT(imagenet_opening(flags, translate(flags, machine_with(4))),
              ElementsAre("Use GPU: 0 for training", "=> creating model 'resnet50'"));
  EXPECT_THAT(imagenet_opening(flags, translate(flags, machine_with(0))),
              ElementsAre("=> creating model 'resnet50'"));
}

TEST(ImagenetSeed, WarnsAsTheExampleDoes) {
  ImagenetFlags flags = flags_for();
  EXPECT_EQ(translate(flags, machine_with(0)).config.seed, 1);
  EXPECT_THAT(translate(flags, machine_with(0)).notes, Not(Contains(HasSubstr("seed"))));
  flags.seed = 7;
  EXPECT_EQ(translate(flags, machine_with(0)).config.seed, 7);
  EXPECT_THAT(translate(flags, machine_with(0)).notes,
              Contains(HasSubstr("You have chosen to seed training.")));
}

TEST(ImagenetFlags, OutOfRangeAreRefusedByName) {
  const auto refused = [](auto change) {
    ImagenetFlags flags = flags_for();
    change(flags);
    return imagenet_refusal(flags, machine_with(2));
  };
  using F = ImagenetFlags;
  EXPECT_THAT(refused([](F& f) { f.arch = "resnet5"; }), HasSubstr("resnet50, vgg16"));
  EXPECT_THAT(refused([](F& f) { f.folder = ""; }), HasSubstr("--dummy"));
  EXPECT_THAT(refused([](F& f) { f.batch_size = 0; }), HasSubstr("--batch-size"));
  EXPECT_THAT(refused([](F& f) { f.epochs = 0; }), HasSubstr("--epochs"));
  EXPECT_THAT(refused([](F& f) { f.workers = 257; }), HasSubstr("--workers"));
  EXPECT_THAT(refused([](F& f) { f.workers = -1; }), HasSubstr("--workers"));
  EXPECT_THAT(refused([](F& f) { f.print_freq = 0; }), HasSubstr("--print-freq"));
  EXPECT_THAT(refused([](F& f) { f.lr = -1; }), HasSubstr("--lr"));
  EXPECT_THAT(refused([](F& f) { f.momentum = 1; }), HasSubstr("--momentum"));
  EXPECT_THAT(refused([](F& f) { f.weight_decay = -1; }), HasSubstr("--weight-decay"));
  EXPECT_THAT(refused([](F& f) { f.seed = -1; }), HasSubstr("--seed"));
  EXPECT_THAT(refused([](F& f) { f.gpu = 2; }), HasSubstr("2 GPUs"));
  EXPECT_THAT(refused([](F& f) { f.gpu = -1; }), HasSubstr("--gpu -1"));
  EXPECT_THAT(refused([](F& f) { f.world_size = 0; }), HasSubstr("--world-size"));
  EXPECT_THAT(refused([](F& f) { f.image_size = 0; }), HasSubstr("--image-size"));
  EXPECT_THAT(refused([](F& f) { f.dist_backend = "ncc"; }), HasSubstr("nccl, gloo, mpi"));
}

TEST(ImagenetFlags, KnowTheRendezvousOfTheExample) {
  ImagenetFlags flags = flags_for();
  for (const char* good : {"tcp://127.0.0.1:2345", "tcp://[::1]:1", "file:///tmp/a"}) {
    flags.dist_url = good;
    EXPECT_EQ(imagenet_refusal(flags), "nothing was refused") << good;
  }
  for (const char* bad : {"", "tcp://", "tcp://host", "tcp://:12", "tcp://host:0", "tcp://host:x",
                          "tcp://host:65536", "file://", "http://host:80", "host:80"}) {
    flags.dist_url = bad;
    EXPECT_THAT(imagenet_refusal(flags), HasSubstr("tcp://HOST:PORT, env:// or file://PATH"))
        << bad;
  }
}

TEST(ImagenetFlags, DecideSettingsThatExist) {
  for (const char* flag : {"DIR", "arch", "workers", "epochs", "batch-size", "lr", "momentum",
                           "weight-decay", "seed", "gpu", "multiprocessing-distributed", "no-accel",
                           "dummy", "image-size", "train-size", "test-size"}) {
    const std::vector<std::string> settings = settings_of_imagenet_flag(flag);
    EXPECT_FALSE(settings.empty()) << flag;
    for (const std::string& setting : settings) {
      bool known = false;
      for (const config::ConfigField& field : methods::config_fields())
        known = known || field.name == setting;
      EXPECT_TRUE(known) << setting;
    }
  }
  EXPECT_TRUE(settings_of_imagenet_flag("print-freq").empty());
}

}  // namespace
}  // namespace cohort::dialects
