#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "dialects/swamp.h"
#include "dialects/swamp_progress.h"
#include "methods/settings.h"

namespace cohort::dialects {
namespace {

using testing::HasSubstr;

std::string swamp_refusal(const SwampFlags& flags) {
  try {
    translate(flags);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(SwampFlags, HaveTheDefaultsOfTheExperiment) {
  const config::RunConfig config = translate({});
  EXPECT_EQ(config.method, "swamp");
  EXPECT_EQ(config.model, "mnistnet");
  EXPECT_EQ(config.data, "mnist");
  EXPECT_EQ(config.workers, 1);
  EXPECT_EQ(config.batch, 64);
  EXPECT_EQ(config.epochs, 1);
  EXPECT_EQ(config.lr, 0.01);
  EXPECT_EQ(config.momentum, 0.5);
  EXPECT_EQ(config.weight_decay, 0);
  EXPECT_EQ(config.own,
            (config::SettingValues{{"pull-probability", 0.0}}));  // the others are ours too
  EXPECT_EQ(config.dump_every, 1);
  methods::check_config(config);
}

TEST(SwampFlags, DoubleCheckAsManySamplesAsTheTwoSizesSay) {
  SwampFlags flags;
  flags.swamp_server = "latest";
  const auto samples = [&] {
    return methods::swamp_settings().read(translate(flags).own).check_samples;
  };
  EXPECT_EQ(samples(), 5 * 64);
  flags.validate_max_batch = 7;
  flags.validate_batch_size = 10;
  EXPECT_EQ(samples(), 70);
  methods::check_config(translate(flags));
}

TEST(SwampFlags, KnowTheLaterDataSetsAndModels) {
  SwampFlags flags;
  flags.data_type = "cifar10";
  EXPECT_EQ(translate(flags).model, "cifar10net");
  EXPECT_EQ(translate(flags).data, "cifar-10");
  EXPECT_EQ(translate(flags).weight_decay, 5e-4);
  EXPECT_EQ(translate(flags).lr_milestones, (std::vector<double>{10, 20, 30}));
  flags.model_name = "resnet18";
  EXPECT_EQ(translate(flags).model, "resnet18-cifar");
  flags.data_type = "ImageNet";
  EXPECT_EQ(translate(flags).model, "resnet18");
  EXPECT_EQ(translate(flags).data, "image-folder");
  methods::check_config(translate(flags));
}

TEST(SwampFlags, RefuseWhatMakesNoSense) {
  SwampFlags flags;
  flags.pull_probability = 1.5;
  EXPECT_THAT(swamp_refusal(flags), HasSubstr("--pull-probability is a probability, from 0 to 1"));
  flags = {};
  flags.crossover_probability = -0.1;
  EXPECT_THAT(swamp_refusal(flags), HasSubstr("--crossover-probability"));
  flags = {};
  flags.trainer_number = 0;
  EXPECT_THAT(swamp_refusal(flags), HasSubstr("--trainer-number must be at least 1"));
  flags = {};
  flags.data_type = "svhn";
  EXPECT_THAT(swamp_refusal(flags), HasSubstr("mnist"));
}

TEST(SwampFlags, NameTheJobAndItsFiles) {
  SwampFlags flags;
  flags.trainer_number = 2;
  flags.pull_probability = 0.5;
  EXPECT_EQ(swamp_job_name(flags), "swamp_t2_pp0.5");
  EXPECT_EQ(swamp_meta(flags), "2_0.5");
  flags.swamp_server = "fifo";
  flags.seed = 3;
  EXPECT_EQ(swamp_job_name(flags), "swamp_t2_pp0.5_fifo_seed3");
  flags.job_name = "mine";
  EXPECT_EQ(swamp_job_name(flags), "mine");
  const SwampMeta meta = parse_swamp_meta("16_1\n");
  EXPECT_EQ(meta.trainers, 16);
  EXPECT_EQ(meta.pull_probability, 1);
  EXPECT_EQ(swamp_loss_file(kSwampLossFile, meta), "swamp_metrics_t_16_pp_1.png");
  EXPECT_EQ(swamp_loss_file("plain.svg", meta), "plain.svg");
  for (const char* text : {"", "2", "2_", "_1", "2_x", "2_0.5_1"}) {
    EXPECT_THROW(parse_swamp_meta(text), ConfigError) << text;
  }
}

TEST(SwampFlags, TakeTheBoolsOfTheExperiment) {
  for (const char* text : {"True", "true", "1"}) EXPECT_TRUE(parse_swamp_bool("--x", text));
  for (const char* text : {"False", "false", "0"}) EXPECT_FALSE(parse_swamp_bool("--x", text));
  EXPECT_THROW(parse_swamp_bool("--x", "yes"), ConfigError);
}

TEST(SwampProgress, PrintsTheLinesOfTheExperiment) {
  std::FILE* out = std::tmpfile();
  const auto progress =
      make_swamp_progress(out, out, {.trainer = 1, .log_interval = 2, .steps_per_epoch = 3});
  for (Step done = 1; done <= 6; ++done) progress->step(done);
  std::rewind(out);
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), out));
  std::fclose(out);
  EXPECT_EQ(text,
            "Current trainer id: 1, epoch: 0, batch id: 0\n"
            "Current trainer id: 1, epoch: 0, batch id: 2\n"
            "trainer 1 done epoch 0\n"
            "Current trainer id: 1, epoch: 1, batch id: 0\n"
            "Current trainer id: 1, epoch: 1, batch id: 2\n"
            "trainer 1 done epoch 1\n");
}

}  // namespace
}  // namespace cohort::dialects
