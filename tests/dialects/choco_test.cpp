#include "dialects/choco.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <sstream>

#include "core/error.h"
#include "core/text.h"

namespace cohort::dialects {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

using Written = std::map<std::string, std::string>;

ChocoSurroundings choco_surroundings() {
  ChocoSurroundings around;
  around.models = {"mlp-100", "lenet", "resnet8", "resnet20", "resnet50", "densenet", "wideresnet"};
  around.data_sets = {"mnist", "cifar-10", "cifar-100", "image-folder", "synthetic"};
  around.topologies = {"complete",          "ring", "torus",  "expander",
                       "margulis-expander", "star", "social", "edges"};
  around.engines = {"threads", "tcp", "mpi"};
  return around;
}

// "--flag value --flag value" as flags.
Written parsed(const std::string& line) {
  std::istringstream words(line);
  Written written;
  std::string flag;
  std::string value;
  while (words >> flag >> value) written[flag.substr(2)] = value;
  return written;
}

ChocoTranslation translated(const std::string& line,
                            const ChocoSurroundings& where = choco_surroundings()) {
  return translate(ChocoFlags(parsed(line)), where);
}

config::RunConfig config_of(const std::string& line) { return translated(line).config; }

std::string choco_refusal(const std::string& line, const std::string& like = "auto") {
  try {
    translate(ChocoFlags(parsed(line)), choco_surroundings(), like);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

// The example of the original's guide, as written there but for program and paths.
constexpr const char* kGuide =
    "--arch resnet20 --optimizer parallel_choco "
    "--avg_model True --experiment demo --manual_seed 6 "
    "--data cifar10 --pin_memory True "
    "--batch_size 128 --base_batch_size 64 --num_workers 2 "
    "--num_epochs 300 --partition_data random --reshuffle_per_epoch True --stop_criteria epoch "
    "--n_mpi_process 16 --n_sub_process 1 --world 0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0 "
    "--on_cuda True --use_ipc False "
    "--lr 0.1 --lr_scaleup True --lr_warmup True --lr_warmup_epochs 5 "
    "--lr_scheduler MultiStepLR --lr_decay 0.1 --lr_milestones 150,225 "
    "--comm_op sign --consensus_stepsize 0.5 --compress_ratio 0.9 --quantize_level 16 "
    "--is_biased True --weight_decay 1e-4 --use_nesterov True --momentum_factor 0.9 "
    "--hostfile hostfile --graph_topology ring --track_time True --display_tracked_time True "
    "--python_path python --mpi_path openmpi";

TEST(ChocoGuide, IsTranslatedAsWritten) {
  const ChocoTranslation job = translated(kGuide);
  const config::RunConfig& config = job.config;
  EXPECT_EQ(job.revision, ChocoRevision::kEarly);
  EXPECT_EQ(config.model, "resnet20");
  EXPECT_EQ(config.data, "cifar-10");
  EXPECT_EQ(config.method, "choco");
  EXPECT_EQ(config.topology, "ring");
  EXPECT_EQ(config.compressor, "sign");
  EXPECT_EQ(config.consensus_stepsize, "0.5");
  EXPECT_TRUE(config.overlap);
  EXPECT_TRUE(config.eval_workers);
  EXPECT_EQ(config.workers, 16);
  EXPECT_EQ(config.batch, 128);
  EXPECT_EQ(config.epochs, 300);
  EXPECT_EQ(config.partition, "random");
  EXPECT_TRUE(config.reshuffle);
  EXPECT_EQ(config.loader_threads, 2);
  EXPECT_EQ(config.seed, 6);
  EXPECT_EQ(config.momentum, 0.9);
  EXPECT_TRUE(config.nesterov);
  EXPECT_EQ(config.weight_decay, 1e-4);
  EXPECT_TRUE(config.no_norm_decay);
  EXPECT_EQ(config.record_every, 100);
  EXPECT_EQ(job.name, "demo");
  EXPECT_EQ(job.runs_dir, "./data/checkpoint");
  EXPECT_TRUE(job.track_time);
  EXPECT_TRUE(job.display_time);
}

TEST(ChocoGuide, ClimbsTo3Point2InFiveEpochsAndFallsAt150And225) {
  const config::RunConfig config = config_of(kGuide);
  EXPECT_DOUBLE_EQ(choco_peak_rate(config, 3), 3.2);
  EXPECT_EQ(config.warmup_from, 0.1);
  EXPECT_EQ(config.warmup_epochs, 5);
  EXPECT_EQ(config.schedule, "multi-step");
  EXPECT_THAT(config.lr_milestones, ElementsAre(150, 225));
  EXPECT_EQ(config.lr_gamma, 0.1);
}

TEST(ChocoGuide, AsksForMpirunOnTheHostsOfItsFile) {
  const ChocoTranslation job = translated(kGuide);
  ASSERT_TRUE(job.launch.has_value());
  EXPECT_EQ(job.launch->processes, 16);
  EXPECT_EQ(job.launch->hosts_file, "hostfile");
  EXPECT_EQ(job.config.engine, "mpi");
}

TEST(ChocoGuide, SaysWhichOfItsFlagsHaveNoEffect) {
  const ChocoTranslation job = translated(kGuide);
  EXPECT_THAT(job.notes, Contains(HasSubstr("no GPU here")));
  EXPECT_THAT(job.notes.back(),
              HasSubstr("without effect on this run: --pin_memory, --compress_ratio, "
                        "--quantize_level, --is_biased, --use_ipc, --mpi_path, --python_path, "
                        "--world"));
}

TEST(ChocoGuide, TakesItsGpusWhereThereAreAny) {
  ChocoSurroundings with_gpus = choco_surroundings();
  with_gpus.gpus = 2;
  const ChocoTranslation job = translated(kGuide, with_gpus);
  EXPECT_EQ(job.config.device, "cuda");
  EXPECT_EQ(job.config.world, "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0");
  EXPECT_THAT(job.notes.back(), Not(HasSubstr("--world")));
  EXPECT_EQ(config_of("--on_cuda no").device, "cpu");
}

// The same in the late program's words: there a worker and its two neighbours count.
TEST(ChocoRate, IsScaledByTheGraphInTheLateProgram) {
  const std::string late =
      "--optimizer parallel_choco_v --graph_topology ring --n_mpi_process 16 --batch_size 128 "
      "--base_batch_size 64 --lr 0.1 --lr_scaleup True --lr_warmup True "
      "--lr_schedule_scheme custom_multistep --lr_change_epochs 150,225 ";
  const config::RunConfig config = config_of(late);
  EXPECT_NEAR(choco_peak_rate(config, 3), 0.6, 1e-15);
  EXPECT_EQ(config.lr_scale_by, "graph");
  EXPECT_EQ(config.warmup_from, 0.1);
  EXPECT_EQ(config.warmup_epochs, 5);
  EXPECT_EQ(config.lr_gamma, 0.1);
  EXPECT_THAT(config.lr_milestones, ElementsAre(150, 225));
  EXPECT_DOUBLE_EQ(choco_peak_rate(config_of(late + "--lr_scaleup_factor world"), 3), 3.2);
  EXPECT_DOUBLE_EQ(choco_peak_rate(config_of(late + "--lr_scaleup_factor 2.5"), 3), 0.5);
  EXPECT_DOUBLE_EQ(choco_peak_rate(config_of(late + "--lr_scaleup_type sqrt"), 3),
                   0.1 * std::sqrt(32.0));
}

TEST(ChocoRate, OfAllWithAllCountsAllWorkers) {
  const config::RunConfig config =
      config_of("--n_mpi_process 8 --batch_size 32 --lr 0.1 --lr_scaleup y");
  EXPECT_EQ(config.method, "all-reduce");
  EXPECT_EQ(config.lr_scale_by, "world");
  EXPECT_DOUBLE_EQ(choco_peak_rate(config, 8), 0.8);
}

TEST(ChocoRate, WithoutScalingIsThatOfTheOwnBatch) {
  const config::RunConfig config = config_of("--batch_size 128 --base_batch_size 64 --lr 0.1");
  EXPECT_EQ(config.lr_scaling, "none");
  EXPECT_DOUBLE_EQ(config.lr, 0.2);
  EXPECT_DOUBLE_EQ(config_of("--batch_size 128 --lr 0.1").lr, 0.1);
  EXPECT_EQ(config_of("").lr, 0.01);
  EXPECT_EQ(config_of("").schedule, "constant");
}

TEST(ChocoRate, OfTheEarlyProgramWarmsUpAsLongAsItIsScaled) {
  const std::string early =
      "--lr_scheduler MultiStepLR --lr_scaleup True --lr_warmup True --batch_size 64 --lr 0.1 ";
  EXPECT_EQ(config_of(early + "--n_mpi_process 16").warmup_epochs, 16);
  EXPECT_EQ(config_of(early + "--n_mpi_process 200").warmup_epochs, 150);
  EXPECT_EQ(config_of(early + "--n_mpi_process 16 --lr_scaleup_init_lr 0.05").warmup_from, 0.05);
  const config::RunConfig exponential = config_of("--lr_scheduler ExponentialLR --lr_decay 0.97");
  EXPECT_EQ(exponential.schedule, "exponential");
  EXPECT_EQ(exponential.lr_gamma, 0.97);
}

TEST(ChocoRate, FollowsStrictFields) {
  const config::RunConfig config = config_of(
      "--lr_schedule_scheme strict --lr_change_epochs 10,20 --lr_fields 0.1,0.5/0.5,0/1,1 "
      "--lr_scale_indicators 0,1,2 --lr_gamma 1 --lr_mu 2 --lr_alpha 3 --num_epochs 30");
  EXPECT_EQ(config.schedule, "fields");
  EXPECT_THAT(config.lr_values, ElementsAre(0.1, 0.5, 0.5, 0, 1, 1));
  EXPECT_THAT(config.lr_milestones, ElementsAre(10, 20, 30));
  EXPECT_THAT(config.lr_shapes, ElementsAre(0, 1, 2));
  EXPECT_EQ(config.lr_gamma, 1);
  EXPECT_EQ(config.lr_mu, 2);
  EXPECT_EQ(config.lr_alpha, 3);
}

TEST(ChocoRate, FollowsOneCycleAndConvexDecay) {
  const config::RunConfig cycle =
      config_of("--lr_schedule_scheme custom_one_cycle --num_epochs 60");
  EXPECT_THAT(cycle.lr_values, ElementsAre(0.15, 3, 3, 0.15, 0.15, 0.0015));
  EXPECT_THAT(cycle.lr_milestones, ElementsAre(23, 46, 60));
  const config::RunConfig convex =
      config_of("--lr_schedule_scheme custom_convex_decay --lr_gamma 4 --lr_mu 2 --lr_alpha 10");
  EXPECT_EQ(convex.schedule, "convex");
  EXPECT_DOUBLE_EQ(convex.lr, 0.2);
}

TEST(ChocoRate, RefusesDecaysOfTheOtherProgram) {
  EXPECT_THAT(choco_refusal("--lr_change_epochs 5 --lr_decay 0.1"), HasSubstr("divides"));
  EXPECT_THAT(choco_refusal("--lr_milestones 5 --lr_decay 10"), HasSubstr("multiplies"));
  EXPECT_THAT(choco_refusal("--lr_milestones 5 --lr_change_epochs 5"), HasSubstr("--like"));
  EXPECT_EQ(choco_refusal("--lr_milestones 5 --lr_change_epochs 5", "early"), "");
  EXPECT_THAT(choco_refusal("--lr_schedule_scheme reduce_on_plateau"), HasSubstr("did nothing"));
  EXPECT_THAT(choco_refusal("--lr_schedule_scheme strict --lr_fields 1,2/3"),
              HasSubstr("two rates"));
  EXPECT_THAT(
      choco_refusal("--lr_schedule_scheme strict --lr_fields 1,2/3,4 --lr_change_epochs 1,2 "
                    "--lr_scale_indicators 0,0"),
      HasSubstr("2 fields"));
  EXPECT_THAT(choco_refusal("--lr_schedule_scheme custom_convex_decay --lr_gamma 1 --lr_mu 1"),
              HasSubstr("give --lr_alpha"));
  EXPECT_THAT(choco_refusal("--lr_scaleup True --lr_scaleup_factor much"),
              HasSubstr("graph, world"));
}

TEST(ChocoMethod, FollowsFromOptimizerAndTopology) {
  const std::string ring = "--n_mpi_process 8 --graph_topology ring --optimizer ";
  const std::map<std::string, std::string> gossip = {{"sgd", "d-psgd"},
                                                     {"adam", "d-psgd"},
                                                     {"parallel_choco", "choco"},
                                                     {"dcd_psgd", "dcd"},
                                                     {"ecd_psgd", "ecd"},
                                                     {"parallel_choco_v", "choco"},
                                                     {"deep_squeeze", "deep-squeeze"}};
  for (const auto& [optimizer, method] : gossip) {
    const config::RunConfig config = config_of(ring + optimizer);
    EXPECT_EQ(config.method, method);
    EXPECT_EQ(config.topology, "ring");
    EXPECT_TRUE(config.eval_workers);
    EXPECT_EQ(config.overlap, method != "d-psgd") << method;
  }
  const std::map<std::string, std::string> central = {
      {"sgd", "all-reduce"},
      {"adamw", "all-reduce"},
      {"ef_sign_sgd", "ef-sign"},
      {"sign_sgd", "sign-sgd"},
      {"dgc --comm_op compress_top_k --compress_ratio 0.9", "dgc"}};
  for (const auto& [optimizer, method] : central) {
    EXPECT_EQ(config_of("--n_mpi_process 8 --optimizer " + optimizer).method, method);
  }
  EXPECT_EQ(config_of("").method, "local");
  for (const char* optimizer : {"ef_sign_sgd", "sign_sgd"}) {
    const ChocoTranslation all = translated(ring + optimizer);
    EXPECT_EQ(all.config.topology, config::RunConfig{}.topology) << optimizer;
    EXPECT_THAT(join(all.notes, "\n"), HasSubstr("all workers exchange with all")) << optimizer;
  }
  EXPECT_THAT(choco_refusal("--optimizer sgdd"), HasSubstr("did you mean 'sgd'"));
  EXPECT_THAT(choco_refusal("--graph_topology data_center"), HasSubstr("no such graph"));
  EXPECT_THAT(choco_refusal("--graph_topology rings"), HasSubstr("did you mean 'ring'"));
  EXPECT_EQ(config_of("--n_mpi_process 9 --optimizer dcd_psgd --graph_topology margulis_expander")
                .topology,
            "margulis-expander");
}

TEST(ChocoMethod, KeepsTheDefaultsOfTheOriginal) {
  const config::RunConfig config = config_of("--optimizer parallel_choco --n_mpi_process 4");
  EXPECT_EQ(config.consensus_stepsize, "0.9");
  EXPECT_EQ(config.estimates_start, "model");  // unlike there
  EXPECT_EQ(config_of("--optimizer parallel_choco --estimates_start zero").estimates_start, "zero");
  EXPECT_EQ(config.topology, "complete");
  EXPECT_EQ(config.batch, 256);
  EXPECT_EQ(config.epochs, 90);
  EXPECT_EQ(config.seed, 6);
  EXPECT_EQ(config.weight_decay, 5e-4);
  EXPECT_EQ(config.partition, "none");
  EXPECT_EQ(config.compressor, "none");
}

TEST(ChocoCompression, IsThatOfTheOperation) {
  const std::string choco = "--optimizer parallel_choco --n_mpi_process 4 --comm_op ";
  config::RunConfig config = config_of(choco + "compress_top_k --compress_ratio 0.99");
  EXPECT_EQ(config.compressor, "top-k");
  EXPECT_EQ(config.compress_ratio, 0.99);
  config = config_of(choco + "compress_random_k --compress_ratio 0.9");
  EXPECT_EQ(config.compressor, "random-k");
  EXPECT_TRUE(config.biased);
  const ChocoTranslation scaled =
      translated(choco + "compress_random_k --compress_ratio 0.9 --is_biased False");
  EXPECT_TRUE(scaled.config.biased);
  EXPECT_THAT(scaled.notes, Contains(HasSubstr("not scaled up")));
  config = config_of(choco + "quantize_qsgd --quantize_level 4 --is_biased True");
  EXPECT_EQ(config.compressor, "qsgd");
  EXPECT_EQ(config.quantize_bits, 4);
  EXPECT_TRUE(config.biased);
  const std::map<std::string, std::string> names = {{"top-k --compress_ratio 0.9", "top-k"},
                                                    {"random-k --compress_ratio 0.9", "random-k"},
                                                    {"top_k --compress_ratio 0.9", "top-k"},
                                                    {"sign+norm", "sign"},
                                                    {"sign", "sign"},
                                                    {"qsgd --quantize_level 4", "qsgd"},
                                                    {"quantize --quantize_level 4", "qsgd"},
                                                    {"none", "none"},
                                                    {"bf16", "bf16"}};
  for (const auto& [flag, compressor] : names) {
    EXPECT_EQ(config_of(choco + flag).compressor, compressor) << flag;
  }
  EXPECT_EQ(config_of("--n_mpi_process 4 --optimizer ef_sign_sgd --comm_op sign+norm").method,
            "ef-sign");
  EXPECT_THAT(choco_refusal(choco + "topk"), HasSubstr("did you mean 'top-k'"));
  EXPECT_EQ(config_of(choco + "quantize_qsgd --quantize_level 32").compressor, "none");
  EXPECT_THAT(choco_refusal(choco + "quantize_qsgd --quantize_level 20"), HasSubstr("1 to 16"));
  EXPECT_THAT(choco_refusal(choco + "quantize_qsgd"), HasSubstr("needs --quantize_level"));
  EXPECT_THAT(choco_refusal(choco + "compress_top_k"), HasSubstr("needs --compress_ratio"));
  EXPECT_THAT(choco_refusal(choco + "compress_top_k --compress_ratio 1"),
              HasSubstr("--compress_ratio"));
  EXPECT_THAT(choco_refusal(choco + "zip"), HasSubstr("compress_top_k"));
}

TEST(ChocoCompression, OfDgcWarmsUpAndClipsTensors) {
  const std::string dgc =
      "--optimizer dgc --n_mpi_process 4 --comm_op compress_top_k --compress_ratio 0.999 ";
  config::RunConfig config = config_of(dgc);
  EXPECT_EQ(config.own, (config::SettingValues{{"mask-momentum", false}}));
  config = config_of(dgc +
                     "--mask_momentum t --compress_warmup_epochs 4 --clip_grad 1 "
                     "--clip_grad_val 0.4 --compress_warmup_values 0.5,0.75");
  EXPECT_EQ(config.own, (config::SettingValues{{"compress-warmup-epochs", 4.0},
                                               {"compress-warmup-values", std::vector{0.5, 0.75}},
                                               {"clip-tensor", 0.4}}));
  EXPECT_EQ(config.clip_norm, 0);
  EXPECT_EQ(config_of("--clip_grad True --clip_grad_val 2").clip_norm, 2);
  EXPECT_THAT(choco_refusal("--clip_grad True"), HasSubstr("--clip_grad_val"));
  EXPECT_THAT(choco_refusal("--optimizer dgc --n_mpi_process 4 --comm_op sign"),
              HasSubstr("ef_sign_sgd"));
}

TEST(ChocoData, KnowsTheOriginalsNamesAndOurs) {
  EXPECT_EQ(config_of("--data cifar100").data, "cifar-100");
  EXPECT_EQ(config_of("--data imagenet --arch resnet50").data, "image-folder");
  EXPECT_EQ(config_of("--data synthetic").data, "synthetic");
  EXPECT_THAT(choco_refusal("--data svhn"), HasSubstr("There are: cifar10, cifar100"));
  EXPECT_EQ(config_of("--partition_data sorted").partition, "sorted");
  EXPECT_EQ(config_of("--partition_data None").partition, "none");
  EXPECT_THAT(choco_refusal("--partition_data some"), HasSubstr("random, sorted or None"));
  EXPECT_THAT(translated("--reshuffle_per_epoch True").notes.back(),
              HasSubstr("--reshuffle_per_epoch"));
}

TEST(ChocoModel, HasDepthAndWidthInItsName) {
  config::RunConfig config =
      config_of("--arch densenet40 --densenet_growth_rate 24 --drop_rate 0.2");
  EXPECT_EQ(config.model, "densenet");
  EXPECT_EQ(config.depth, 40);
  EXPECT_EQ(config.growth, 24);
  EXPECT_EQ(config.dropout, 0.2);
  config = config_of("--arch wideresnet28 --wideresnet_widen_factor 10");
  EXPECT_EQ(config.model, "wideresnet");
  EXPECT_EQ(config.depth, 28);
  EXPECT_EQ(config.widen, 10);
  EXPECT_EQ(config.dropout, 0);
  EXPECT_EQ(config_of("--arch resnet8").depth, 0);
  EXPECT_THAT(translated("--arch resnet8 --drop_rate 0.1").notes.back(), HasSubstr("--drop_rate"));
  EXPECT_THAT(choco_refusal("--arch resnet9"), HasSubstr("resnet8"));
  EXPECT_THAT(choco_refusal("--arch densenet40 --densenet_bc_mode True"), HasSubstr("bottlenecks"));
}

TEST(ChocoModel, OfLanguageHasItsOwnSettings) {
  ChocoSurroundings with_text = choco_surroundings();
  with_text.models.push_back("lstm");
  with_text.data_sets.push_back("wikitext-2");
  const ChocoTranslation job = translated(
      "--arch rnn_lm --data wikitext2 --rnn_n_hidden 650 --rnn_n_layers 3 --rnn_bptt_len 30 "
      "--rnn_clip 0.4 --drop_rate 0.4 --rnn_use_pretrained_emb False --partition_data random "
      "--optimizer parallel_choco --n_mpi_process 4 --graph_topology ring --comm_op sign",
      with_text);
  EXPECT_EQ(job.config.model, "lstm");
  EXPECT_EQ(job.config.data, "wikitext-2");
  EXPECT_EQ(job.config.rnn_hidden, 650);
  EXPECT_EQ(job.config.rnn_layers, 3);
  EXPECT_EQ(job.config.bptt, 30);
  EXPECT_EQ(job.config.clip_norm, 0.4);
  EXPECT_EQ(job.config.dropout, 0.4);
  EXPECT_TRUE(job.config.tie_weights);
  EXPECT_EQ(job.config.partition, "none");
  EXPECT_THAT(job.notes.back(), HasSubstr("--partition_data"));
  EXPECT_THAT(choco_refusal("--arch rnn_lm --rnn_use_pretrained_emb True"),
              HasSubstr("random vectors"));
  EXPECT_THAT(choco_refusal("--arch rnn_lm --rnn_weight_norm True"), HasSubstr("not normalised"));
}

TEST(ChocoLength, IsOfEpochsOrOfIterationsOfAll) {
  const config::RunConfig config =
      config_of("--stop_criteria iteration --num_iterations 32001 --n_mpi_process 16");
  EXPECT_EQ(config.iterations, 2000);
  EXPECT_EQ(config_of("--num_epochs 3").iterations, 0);
  EXPECT_THAT(choco_refusal("--stop_criteria never"), HasSubstr("epoch or iteration"));
  EXPECT_THAT(choco_refusal("--stop_criteria iteration --num_iterations 3 --n_mpi_process 4"),
              HasSubstr("all 4 workers"));
}

TEST(ChocoEngine, IsThreadsUnlessMpiIsAskedFor) {
  EXPECT_EQ(config_of("--n_mpi_process 4").engine, "threads");
  EXPECT_FALSE(translated("--n_mpi_process 4").launch.has_value());
  EXPECT_TRUE(translated("--n_mpi_process 4 --backend mpi").launch.has_value());
  EXPECT_FALSE(translated("--n_mpi_process 1 --hostfile h").launch.has_value());
  EXPECT_EQ(translated("--n_mpi_process 2 --n_sub_process 2 --backend mpi").launch->processes, 4);
  const ChocoFlags mpi(parsed("--n_mpi_process 4 --hostfile h"));
  const ChocoTranslation threads = translate(mpi, choco_surroundings(), "auto", "threads");
  EXPECT_EQ(threads.config.engine, "threads");
  EXPECT_FALSE(threads.launch.has_value());
  EXPECT_THAT(threads.notes.back(), HasSubstr("--hostfile"));
  ChocoSurroundings without = choco_surroundings();
  without.engines = {"threads"};
  EXPECT_THROW(translate(mpi, without), ConfigError);
}

TEST(ChocoEngine, IsThatOfTheLauncherInsideAJob) {
  ChocoSurroundings inside = choco_surroundings();
  inside.processes = 4;
  ChocoTranslation job = translated("--hostfile h --backend mpi", inside);
  EXPECT_EQ(job.config.workers, 4);
  EXPECT_EQ(job.config.engine, "auto");
  EXPECT_FALSE(job.launch.has_value());
  job = translated("--n_mpi_process 8", inside);
  EXPECT_EQ(job.config.workers, 8);
}

TEST(ChocoFlagsTable, RefusesWhatIsNotHereAndSaysWhy) {
  EXPECT_THAT(choco_refusal("--remote_exec True"), HasSubstr("--hostfile"));
  EXPECT_EQ(choco_refusal("--remote_exec False"), "");
  EXPECT_THAT(choco_refusal("--use_lmdb_data yes"), HasSubstr("own files"));
  EXPECT_THAT(choco_refusal("--clean_python True"), HasSubstr("killed"));
  EXPECT_THAT(choco_refusal("--comm_algo x"), HasSubstr("did nothing"));
  EXPECT_THAT(choco_refusal("--local_rank 0"), HasSubstr("mpirun"));
  EXPECT_THAT(choco_refusal("--checkpoint_index 5"), HasSubstr("newest"));
  EXPECT_THAT(choco_refusal("--turn_on_local_step_from 3"), HasSubstr("--local_step"));
  EXPECT_THAT(choco_refusal("--evaluate True"), HasSubstr("give --resume"));
  EXPECT_THAT(choco_refusal("--lr fast"), HasSubstr("--lr takes a number"));
  EXPECT_THAT(choco_refusal("--lr_scaleup maybe"), HasSubstr("True or False"));
  EXPECT_THAT(choco_refusal("--batch_size 0"), HasSubstr("--batch_size must be from 1"));
  EXPECT_THROW(ChocoFlags(Written{{"bacth_size", "1"}}), ConfigError);
}

TEST(ChocoFlagsTable, DoesWhatDidNothing) {
  EXPECT_EQ(config_of("--local_step 4 --n_mpi_process 2").own,
            (config::SettingValues{{"average-every", std::int64_t{4}}}));
  EXPECT_EQ(config_of("--eval_freq 5").eval_every, 5);
  const config::RunConfig adam = config_of("--optimizer adam --adam_beta_1 0.8 --adam_eps 1e-6");
  EXPECT_EQ(adam.optimizer, "adam");
  EXPECT_EQ(adam.beta1, 0.8);
  EXPECT_EQ(adam.epsilon, 1e-6);
  EXPECT_GT(config_of("--save_all_models True").keep, 1000);
  EXPECT_FALSE(config_of("--train_fast 1 --n_mpi_process 4 --optimizer dcd_psgd").eval_workers);
  EXPECT_THAT(translated("--user me --project p --adam_beta_1 0.8").notes.back(),
              HasSubstr("--adam_beta_1, --user, --project"));
}

// Every flag alone, with its usual value: none is unknown to the translation or breaks it.
TEST(ChocoFlagsTable, HoldsWithEveryFlagAtItsUsualValue) {
  EXPECT_EQ(choco_flags().size(), 107U);  // 106 of the original, and --estimates_start
  for (const ChocoFlag& flag : choco_flags()) {
    if (flag.usual.empty()) continue;
    EXPECT_EQ(choco_refusal("--" + flag.name + " " + flag.usual), "") << flag.name;
  }
}

}  // namespace
}  // namespace cohort::dialects
