#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "core/error.h"
#include "dialects/dist_train.h"
#include "dialects/native_command.h"

namespace cohort::dialects {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

PaddleSurroundings paddle_surroundings(Variables variables = {}, int gpus = 0) {
  PaddleSurroundings result;
  result.variables = std::move(variables);
  result.gpus = gpus;
  result.models = {"resnet20", "resnet50", "dist_resnet50"};
  return result;
}

const Variables kFirstTrainer = {
    {"PADDLE_TRAINING_ROLE", "TRAINER"},
    {"PADDLE_TRAINERS", "4"},
    {"PADDLE_PSERVER_IPS", "192.168.0.100,192.168.0.101,192.168.0.102,192.168.0.103"},
    {"PADDLE_TRAINER_ID", "0"},
    {"PADDLE_PSERVER_PORT", "7164"}};

// As in the published commands.
DistTrainFlags published_dist_train_flags(const std::string& update_method,
                                          const std::string& device = "GPU") {
  DistTrainFlags flags;
  flags.model = "ResNet50";
  flags.batch_size = 32;
  flags.update_method = update_method;
  flags.device = device;
  flags.data_dir = "../data/ILSVRC2012";
  flags.given = {"model", "batch_size", "update_method", "device", "data_dir"};
  return flags;
}

std::string native(const DistTrainFlags& flags, const PaddleSurroundings& surroundings) {
  return shell_line(native_command(translate(flags, surroundings).config));
}

std::string dist_train_refusal(const DistTrainFlags& flags,
                               const PaddleSurroundings& surroundings = paddle_surroundings()) {
  try {
    translate(flags, surroundings);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(DistTrain, ThePublishedTrainerPushesSlicesInRounds) {
  EXPECT_EQ(native(published_dist_train_flags("pserver"), paddle_surroundings(kFirstTrainer, 1)),
            "cohort train --model resnet50 --data image-folder --method parameter-server "
            "--device cuda --workers 4 --servers "
            "192.168.0.100:7164,192.168.0.101:7164,192.168.0.102:7164,192.168.0.103:7164 "
            "--rank 0 --data-dir ../data/ILSVRC2012 --batch 32 --image-size 224 "
            "--augment resized-crop --loader-threads 8 --lr 0.001 --weight-decay 1e-04 "
            "--schedule multi-step --lr-milestones 30,60,90 --epochs 100 --iterations 8000 "
            "--eval-batch 32 --record-every 1");
}

TEST(DistTrain, ThePublishedServerNeedsNoModel) {
  Variables variables = kFirstTrainer;
  variables["PADDLE_TRAINING_ROLE"] = "PSERVER";
  variables["PADDLE_CURRENT_IP"] = "192.168.0.100";
  const DistTrainTranslation server =
      translate(published_dist_train_flags("pserver", "CPU"), paddle_surroundings(variables));
  EXPECT_TRUE(server.cluster.is_server);
  EXPECT_EQ(server.cluster.index, 0);
  EXPECT_THAT(server.notes, IsEmpty());
}

TEST(DistTrain, ThePublishedCollectiveTrainersMeetOverTcp) {
  const Variables variables = {
      {"PADDLE_TRAINING_ROLE", "TRAINER"},
      {"PADDLE_TRAINERS", "4"},
      {"PADDLE_TRAINER_IPS", "192.168.0.100,192.168.0.101,192.168.0.102,192.168.0.103"},
      {"PADDLE_TRAINER_ID", "2"}};
  const DistTrainTranslation trainer =
      translate(published_dist_train_flags("pserver"), paddle_surroundings(variables));
  EXPECT_EQ(trainer.config.method, "all-reduce");
  EXPECT_EQ(trainer.config.engine, "tcp");
  EXPECT_EQ(trainer.config.workers, 4);
  EXPECT_EQ(trainer.cluster.index, 2);
  EXPECT_EQ(trainer.cluster.trainers_at[0], "192.168.0.100:6174");
}

TEST(DistTrain, ModesOfTheServers) {
  DistTrainFlags flags = published_dist_train_flags("pserver");
  flags.async_mode = true;
  flags.split_var = false;
  flags.multi_batch_repeat = 4;
  const config::RunConfig config = translate(flags, paddle_surroundings(kFirstTrainer)).config;
  EXPECT_EQ(config.server_mode, "async");
  EXPECT_EQ(config.sharding, "whole");
  EXPECT_EQ(config.accumulate, 4);
  flags.gpus = 2;  // merged before they are sent
  EXPECT_EQ(translate(flags, paddle_surroundings(kFirstTrainer)).config.accumulate, 8);
}

TEST(DistTrain, DevicesOfOneProcess) {
  DistTrainFlags flags = published_dist_train_flags("local");
  EXPECT_EQ(translate(flags, paddle_surroundings()).config.method, "local");
  EXPECT_THAT(translate(flags, paddle_surroundings()).notes,
              Contains(HasSubstr("no GPU was found")));
  EXPECT_EQ(translate(flags, paddle_surroundings({}, 1)).config.device, "cuda");
  flags.gpus = 4;
  config::RunConfig config = translate(flags, paddle_surroundings({}, 4)).config;
  EXPECT_EQ(config.method, "all-reduce");
  EXPECT_EQ(config.engine, "nccl");
  EXPECT_EQ(config.workers, 4);
  EXPECT_EQ(config.batch, 32);  // of a device
  flags.reduce_strategy = "reduce";
  config = translate(flags, paddle_surroundings({}, 4)).config;
  EXPECT_EQ(config.method, "data-parallel");
  EXPECT_EQ(config.batch, 128);
  EXPECT_THAT(dist_train_refusal(flags, paddle_surroundings({}, 2)),
              HasSubstr("--gpus 4: there are 2"));
  flags.gpus = 1;
  EXPECT_THAT(translate(flags, paddle_surroundings({}, 4)).notes,
              Contains(HasSubstr("it changes nothing")));
}

TEST(DistTrain, VariablesChooseTheDevice) {
  DistTrainFlags flags = published_dist_train_flags("local");
  EXPECT_EQ(translate(flags, paddle_surroundings({{"FLAGS_selected_gpus", "3"}}, 4)).config.device,
            "cuda:3");
  EXPECT_THAT(dist_train_refusal(flags, paddle_surroundings({{"FLAGS_selected_gpus", "4"}}, 4)),
              HasSubstr("FLAGS_selected_gpus=4: there are 4 GPUs"));
  flags.gpus = 2;
  flags.given.emplace_back("gpus");
  const auto one = translate(flags, paddle_surroundings({{"FLAGS_selected_gpus", "1"}}, 4));
  EXPECT_EQ(one.config.method, "local");
  EXPECT_THAT(one.notes, Contains(HasSubstr("--gpus 2 has no effect with FLAGS_selected_gpus")));
  flags.device = "CPU";
  const config::RunConfig config =
      translate(flags, paddle_surroundings({{"CPU_NUM", "2"}}, 4)).config;
  EXPECT_EQ(config.workers, 2);
  EXPECT_EQ(config.engine, "auto");
  EXPECT_EQ(config.device, "cpu");
  flags.cpus = 3;
  flags.given.emplace_back("cpus");
  EXPECT_EQ(translate(flags, paddle_surroundings()).config.threads, 3);
}

TEST(DistTrain, TheFlagsSayWhichOfTheThreeProgramsIsMeant) {
  DistTrainFlags flags;
  EXPECT_EQ(paddle_revision(flags), PaddleRevision::kPublished);
  flags.given = {"multi_batch_repeat"};
  EXPECT_EQ(paddle_revision(flags), PaddleRevision::kBatchMerge);
  flags.given = {"multi_batch_repeat", "lr"};
  EXPECT_EQ(paddle_revision(flags), PaddleRevision::kLater);
  flags.like = "2018";
  EXPECT_EQ(paddle_revision(flags), PaddleRevision::kPublished);
  flags = {};
  flags.model = "DistResNet";
  flags.given = {"model"};
  EXPECT_EQ(paddle_revision(flags), PaddleRevision::kBatchMerge);
}

TEST(DistTrain, OctoberWarmsUpToTheNumberOfTrainers) {
  DistTrainFlags flags;
  flags.update_method = "pserver";
  flags.multi_batch_repeat = 4;
  flags.given = {"update_method", "multi_batch_repeat"};
  const DistTrainTranslation trainer = translate(flags, paddle_surroundings(kFirstTrainer));
  const config::RunConfig& config = trainer.config;
  EXPECT_EQ(config.model, "dist_resnet50");
  EXPECT_TRUE(config.no_norm_decay);
  EXPECT_DOUBLE_EQ(config.lr, 0.1 * 4 * 4);
  EXPECT_DOUBLE_EQ(config.warmup_from, 0.1);
  EXPECT_EQ(config.warmup_epochs, 5);
  EXPECT_THAT(config.lr_milestones, ElementsAre(30, 60, 80));
  EXPECT_EQ(config.epochs, 90);
  EXPECT_EQ(config.iterations, 0);
  EXPECT_EQ(config.batch, 32);
  EXPECT_EQ(trainer.skip_batches, 0);
}

TEST(DistTrain, TheLaterProgramDividesTheBatchOfAProcess) {
  DistTrainFlags flags;
  flags.like = "2019";
  config::RunConfig config = translate(flags, paddle_surroundings({}, 4)).config;
  EXPECT_EQ(config.batch, 64);
  EXPECT_EQ(config.workers, 4);
  EXPECT_EQ(config.epochs, 120);
  EXPECT_DOUBLE_EQ(config.lr, 0.1);
  EXPECT_EQ(config.warmup_epochs, 0);  // from 0.1 to 0.1
  EXPECT_EQ(config.data_dir, "./data/ILSVRC2012");
  // One process for each of 2 x 4 GPUs.
  flags.update_method = "nccl2";
  config = translate(flags, paddle_surroundings(
                                {{"FLAGS_selected_gpus", "1"},
                                 {"PADDLE_TRAINER_ENDPOINTS", "a:1,a:2,a:3,a:4,b:1,b:2,b:3,b:4"},
                                 {"PADDLE_TRAINER_ID", "1"}},
                                4))
               .config;
  EXPECT_EQ(config.batch, 64);
  EXPECT_EQ(config.workers, 8);
  EXPECT_EQ(config.device, "cuda:1");
  EXPECT_DOUBLE_EQ(config.lr, 0.2);  // by nodes
}

TEST(DistTrain, TheCosineChangesBetweenPasses) {
  DistTrainFlags flags;
  flags.lr_strategy = "cosine_decay";
  flags.pass_num = 4;
  flags.given = {"lr_strategy", "num_epochs"};
  const config::RunConfig config = translate(flags, paddle_surroundings()).config;
  EXPECT_EQ(config.schedule, "piecewise");
  EXPECT_THAT(config.lr_milestones, ElementsAre(1, 2, 3));
  ASSERT_EQ(config.lr_values.size(), 4U);
  for (int pass = 0; pass < 4; ++pass) {
    EXPECT_DOUBLE_EQ(config.lr_values[static_cast<std::size_t>(pass)],
                     0.1 * (std::cos(pass * std::numbers::pi / 4) + 1) / 2);
  }
  flags.lr_strategy = "constant";
  EXPECT_EQ(translate(flags, paddle_surroundings()).config.schedule, "constant");
}

TEST(DistTrain, DataSets) {
  DistTrainFlags flags = published_dist_train_flags("local", "CPU");
  flags.data_set = "imagenet";
  PaddleSurroundings surroundings = paddle_surroundings();
  surroundings.list_files = true;
  EXPECT_EQ(translate(flags, surroundings).config.data, "image-list");
  flags.data_set = "cifar10";
  flags.model = "resnet20";
  config::RunConfig config = translate(flags, surroundings).config;
  EXPECT_EQ(config.data, "cifar-10");
  EXPECT_EQ(config.data_dir, "../data/ILSVRC2012");  // the user wrote it
  flags.given = {};
  EXPECT_EQ(translate(flags, surroundings).config.data_dir, "");
  flags.use_fake_data = true;
  config = translate(flags, surroundings).config;
  EXPECT_EQ(config.data, "synthetic");
  EXPECT_EQ(config.synthetic_shape, "3x32x32");
  EXPECT_EQ(config.synthetic_classes, 10);
  flags.data_set = "flowers";
  EXPECT_EQ(translate(flags, surroundings).config.synthetic_classes, 102);
  flags.no_random = true;
  EXPECT_FALSE(translate(flags, surroundings).config.shuffle);
}

TEST(DistTrain, PassesAndTests) {
  DistTrainFlags flags = published_dist_train_flags("local", "CPU");
  DistTrainTranslation job = translate(flags, paddle_surroundings());
  EXPECT_EQ(job.passes, 100);
  EXPECT_EQ(job.iterations, 80);
  EXPECT_EQ(job.skip_batches, 5);
  EXPECT_EQ(job.first_tested, 0);
  flags.no_test = true;
  flags.iterations = 0;
  flags.pass_num = 2;
  job = translate(flags, paddle_surroundings());
  EXPECT_EQ(job.first_tested, -1);
  EXPECT_EQ(job.config.iterations, 0);
  EXPECT_EQ(job.config.epochs, 2);
}

TEST(DistTrain, RefusesAndTellsWhatIsNotHere) {
  DistTrainFlags flags = published_dist_train_flags("local", "CPU");
  flags.fp16 = true;
  EXPECT_THAT(dist_train_refusal(flags), HasSubstr("--fp16 is not here"));
  flags.fp16 = false;
  flags.enable_dgc = true;
  EXPECT_THAT(dist_train_refusal(flags), HasSubstr("--enable_dgc is not here"));
  flags.enable_dgc = false;
  flags.model = "DPN68";
  EXPECT_THAT(dist_train_refusal(flags), HasSubstr("unknown --model 'DPN68'"));
  flags.model = "ResNet50";
  flags.device = "TPU";
  EXPECT_THAT(dist_train_refusal(flags), HasSubstr("unknown --device 'TPU'"));
  flags.device = "CPU";
  flags.image_shape = "3,224";
  EXPECT_THAT(dist_train_refusal(flags), HasSubstr("--image_shape must be 3,SIDE,SIDE"));
  flags.image_shape = "3,224,224";
  flags.batch_size = 0;
  EXPECT_THAT(dist_train_refusal(flags), HasSubstr("--batch_size must be from 1"));
  flags.batch_size = 32;
  flags.async_mode = true;
  flags.given.emplace_back("memory_optimize");
  const auto notes = translate(flags, paddle_surroundings()).notes;
  EXPECT_THAT(notes, Contains(HasSubstr("--async_mode has no effect without")));
  EXPECT_THAT(notes, Contains("--memory_optimize has no effect here"));
}

TEST(DistTrainOpening, ListsTheFlagsOfTheProgramSortedAndThePaddleVariables) {
  Variables variables = kFirstTrainer;
  variables["CPU_NUM"] = "2";
  EXPECT_THAT(
      translate(published_dist_train_flags("pserver"), paddle_surroundings(variables)).opening,
      ElementsAre(
          "----------- Configuration Arguments -----------", "async_mode: False", "batch_size: 32",
          "cpus: auto", "data_dir: ../data/ILSVRC2012", "data_format: NCHW", "data_set: flowers",
          "device: GPU", "gpus: 1", "iterations: 80", "learning_rate: 0.001",
          "memory_optimize: False", "model: ResNet50", "no_random: False", "no_split_var: False",
          "no_test: False", "pass_num: 100", "reduce_strategy: all_reduce", "skip_batch_num: 5",
          "update_method: pserver", "------------------------------------------------",
          "----------- Configuration envs -----------",
          "ENV PADDLE_PSERVER_IPS:192.168.0.100,192.168.0.101,192.168.0.102,192.168.0.103",
          "ENV PADDLE_PSERVER_PORT:7164", "ENV PADDLE_TRAINERS:4", "ENV PADDLE_TRAINER_ID:0",
          "ENV PADDLE_TRAINING_ROLE:TRAINER", "------------------------------------------------"));
}

TEST(DistTrainOpening, HasTheLaterProgramsForm) {
  DistTrainFlags flags;
  flags.like = "2019";
  const auto lines = translate(flags, paddle_surroundings()).opening;
  EXPECT_EQ(lines.front(), "-------------  Configuration Arguments -------------");
  EXPECT_THAT(lines, Contains("               async_mode : False"));
  EXPECT_THAT(lines, Contains("                       lr : 0.1"));
  EXPECT_THAT(lines, Contains("         pretrained_model : None"));
  EXPECT_THAT(lines, Contains("               scale_loss : 1.0"));
  EXPECT_THAT(lines, Not(Contains(HasSubstr("skip_batch_num"))));
}

}  // namespace
}  // namespace cohort::dialects
