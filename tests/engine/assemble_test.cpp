#include "engine/assemble.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/error.h"

namespace cohort::engine {
namespace {

using testing::HasSubstr;

config::RunConfig synthetic_config() {
  config::RunConfig config;
  config.model = "mlp-100";
  config.data = "synthetic";
  config.synthetic_shape = "1x6x5";
  config.synthetic_classes = 4;
  config.train_size = 100;
  config.test_size = 20;
  config.batch = 8;
  return config;
}

TEST(OpenData, MakesWhatTheConfigurationAsksFor) {
  const auto data = open_data(synthetic_config(), {});
  EXPECT_EQ(data->train->size(), 100);
  EXPECT_EQ(data->test->size(), 20);
  EXPECT_EQ(data->train->shape(), (data::SampleShape{1, 6, 5}));
  EXPECT_EQ(data->train->class_names().size(), 4U);
}

TEST(OpenData, RefusesShapesThatAreNone) {
  for (const char* shape : {"", "3", "3x32", "3x32x32x32", "0x8x8", "-1x8x8", "3x8x", "axbxc",
                            "3x8x5000", "3 x8x8", "3x8x8 ", "99999999999999999999x8x8"}) {
    config::RunConfig config = synthetic_config();
    config.synthetic_shape = shape;
    try {
      open_data(config, {});
      FAIL() << "accepted '" << shape << "'";
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr("CHANNELSxHEIGHTxWIDTH"));
    }
  }
}

TEST(BuildModel, FollowsFromTheSeed) {
  config::RunConfig config = synthetic_config();
  const auto data = open_data(config, {});
  const auto first = build_model(config, *data->train);
  const auto second = build_model(config, *data->train);
  config.seed = 2;
  const auto other = build_model(config, *data->train);
  const auto weight = [](const std::unique_ptr<models::Model>& model) {
    return model->store().parameters().front().value.detach();
  };
  EXPECT_EQ(first->store().numel(), 30 * 100 + 100 + 100 * 4 + 4);
  EXPECT_TRUE(weight(first).equal(weight(second)));
  EXPECT_FALSE(weight(first).equal(weight(other)));
}

TEST(SampleOrderOfAConfiguration, OneBatchIsOneStepOfAllItsPasses) {
  config::RunConfig config = synthetic_config();
  const auto data = open_data(config, {});
  EXPECT_EQ(sample_order(config, *data->train, {}).steps_per_epoch(), 13);
  config.accumulate = 4;
  EXPECT_EQ(sample_order(config, *data->train, {}).steps_per_epoch(), 4);
  config.drop_last = true;
  EXPECT_EQ(sample_order(config, *data->train, {}).steps_per_epoch(), 3);
}

TEST(SampleOrderOfAConfiguration, ASortedPartitionGivesAWorkerOnlyItsLabels) {
  config::RunConfig config = synthetic_config();
  config.partition = "sorted";
  const auto data = open_data(config, {});
  std::set<std::int64_t> seen;
  for (Rank rank = 0; rank < 4; ++rank) {
    const data::SampleOrder order = sample_order(config, *data->train, {rank, 4});
    EXPECT_EQ(order.samples_per_epoch(), 25);
    std::set<std::int64_t> labels;
    for (Step step = 0; step < order.steps_per_epoch(); ++step) {
      for (const data::SampleRef& sample : order.batch(step)) {
        labels.insert(data->train->label(sample.index));
        EXPECT_TRUE(seen.insert(sample.index).second) << sample.index;
      }
    }
    EXPECT_EQ(labels, std::set<std::int64_t>{rank});
  }
  EXPECT_EQ(seen.size(), 100U);
}

TEST(SampleOrderOfAConfiguration, WorkersWithoutAPartitionDivideEveryBatch) {
  config::RunConfig config = synthetic_config();
  const auto data = open_data(config, {});
  const data::SampleOrder first = sample_order(config, *data->train, {0, 2});
  const data::SampleOrder second = sample_order(config, *data->train, {1, 2});
  EXPECT_EQ(first.steps_per_epoch(), 7);
  std::set<std::int64_t> seen;
  for (Step step = 0; step < 7; ++step) {
    for (const data::SampleRef& sample : first.batch(step)) seen.insert(sample.index);
    for (const data::SampleRef& sample : second.batch(step)) seen.insert(sample.index);
  }
  EXPECT_EQ(seen.size(), 100U);
}

TEST(TotalSteps, AreIterationsOrElseEpochs) {
  config::RunConfig config = synthetic_config();
  config.epochs = 3;
  const auto data = open_data(config, {});
  const data::SampleOrder order = sample_order(config, *data->train, {});
  EXPECT_EQ(total_steps(config, order), 39);
  config.iterations = 7;
  EXPECT_EQ(total_steps(config, order), 7);
}

TEST(BuildSchedule, EndsWhenTheRunEnds) {
  config::RunConfig config = synthetic_config();
  config.schedule = "cosine";
  config.lr = 0.4;
  config.lr_min = 0.1;
  const auto data = open_data(config, {});
  const data::SampleOrder order = sample_order(config, *data->train, {});
  config.epochs = 4;
  EXPECT_NEAR(build_schedule(config, order)->at(0), 0.4, 1e-12);
  EXPECT_NEAR(build_schedule(config, order)->at(2), 0.25, 1e-12);
  EXPECT_NEAR(build_schedule(config, order)->at(4), 0.1, 1e-12);
  config.iterations = 26;  // two epochs of 13
  EXPECT_NEAR(build_schedule(config, order)->at(1), 0.25, 1e-12);
}

TEST(BuildSchedule, WarmsUpAndScalesByTheWholeStep) {
  config::RunConfig config = synthetic_config();
  config.lr = 0.1;
  config.accumulate = 4;  // 32 samples a step
  config.lr_scaling = "linear";
  config.base_batch = 16;
  config.warmup_epochs = 2;
  const auto data = open_data(config, {});
  const auto schedule = build_schedule(config, sample_order(config, *data->train, {}));
  EXPECT_NEAR(schedule->at(0), 0.0, 1e-12);
  EXPECT_NEAR(schedule->at(1), 0.1, 1e-12);
  EXPECT_NEAR(schedule->at(3), 0.2, 1e-12);
}

TEST(ChooseThreads, ObeysTheUserAndElseTheWork) {
  config::RunConfig config = synthetic_config();
  const auto data = open_data(config, {});
  const auto model = build_model(config, *data->train);
  EXPECT_EQ(choose_threads(config, *model, 16), 1);
  config.batch = 100000;
  EXPECT_EQ(choose_threads(config, *model, 16), 16);
  EXPECT_EQ(choose_threads(config, *model, 0), 1);  // the system does not know its cores
  config.threads = 3;
  EXPECT_EQ(choose_threads(config, *model, 16), 3);
}

TEST(WantsChannelsLast, ForConvolutionsUnlessTheUserChose) {
  config::RunConfig config = synthetic_config();
  const auto data = open_data(config, {});
  const auto mlp = build_model(config, *data->train);
  EXPECT_FALSE(wants_channels_last(config, *mlp));
  config.synthetic_shape = "3x16x16";
  config.model = "resnet8";
  const auto images = open_data(config, {});
  const auto convolutional = build_model(config, *images->train);
  EXPECT_TRUE(wants_channels_last(config, *convolutional));
  config.memory_format = "contiguous";
  EXPECT_FALSE(wants_channels_last(config, *convolutional));
  config.memory_format = "channels-last";
  EXPECT_TRUE(wants_channels_last(config, *mlp));
}

TEST(TrainerOptionsOfAConfiguration, FollowFromTheSettings) {
  config::RunConfig config = synthetic_config();
  config.eval_every = 2;
  config.label_smoothing = 0.1;
  config.seed = 9;
  config.target_accuracy = 0.5;
  const auto data = open_data(config, {});
  const auto model = build_model(config, *data->train);
  const WorkerPlace place{1, 2};
  const data::SampleOrder order = sample_order(config, *data->train, place);
  TrainerOptions options = trainer_options(config, *model, order, place);
  EXPECT_EQ(options.eval_every_epochs, 2);
  EXPECT_EQ(options.checkpoint_every_steps, 0);
  EXPECT_EQ(options.total_steps, 35);
  EXPECT_EQ(options.step.seed, 9U);
  EXPECT_EQ(options.step.rank, 1);
  EXPECT_EQ(options.step.label_smoothing, 0.1);
  EXPECT_EQ(options.target_accuracy, 0.5);
  config.checkpoint_every = 5;
  config.eval_every = 0;
  options = trainer_options(config, *model, order, place);
  EXPECT_EQ(options.checkpoint_every_steps, 5);
  EXPECT_EQ(options.eval_every_epochs, 0);
}

TEST(ReplicaOptionsOfAConfiguration, CarryTheOptimizersSettings) {
  config::RunConfig config = synthetic_config();
  config.optimizer = "adamw";
  config.beta2 = 0.95;
  config.weight_decay = 0.3;
  config.no_norm_decay = true;
  config.clip_norm = 2;
  const auto data = open_data(config, {});
  const auto model = build_model(config, *data->train);
  const methods::ReplicaOptions options = replica_options(config, *model, at::kCPU);
  EXPECT_EQ(options.optimizer, "adamw");
  EXPECT_EQ(options.optimizer_options.beta2, 0.95);
  EXPECT_EQ(options.weight_decay, 0.3);
  EXPECT_FALSE(options.decay_normalization);
  EXPECT_EQ(options.clip_norm, 2);
  EXPECT_FALSE(options.channels_last);
}

}  // namespace
}  // namespace cohort::engine
