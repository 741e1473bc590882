#include "engine/training_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "engine/small_training.h"

namespace cohort::engine::test {
namespace {

using testing::HasSubstr;

// The parameters after steps of plain SGD over the same batch.
template <class AnyModel>
at::Tensor after_steps(const BatchTensors& batch, std::int64_t accumulate,
                       std::vector<Step> steps = {0, 1, 2}) {
  AnyModel model;
  methods::Replica replica(model, {});
  const auto method = methods::methods().make("local", methods::MethodOptions{});
  TrainingStep step(model, replica, *method,
                    {.pass_samples = (batch.labels.size(0) + accumulate - 1) / accumulate});
  ClassificationSums sums;
  for (const Step number : steps) step.run(batch, batch.labels.size(0), {number, 0.1}, sums);
  EXPECT_EQ(sums.values().samples, batch.labels.size(0) * static_cast<std::int64_t>(steps.size()));
  return replica.parameters().clone();
}

// Asks for a probe in every second step and keeps what it is told.
class Prober final : public methods::UpdateMethod, public methods::OverlappedExchange {
 public:
  void start(methods::Replica&) override {}
  methods::StepKind before_step(methods::Replica&) override {
    return updates % 2 == 1 ? methods::StepKind::kProbe : methods::StepKind::kTrain;
  }
  void gradients_ready(methods::Replica&, Range) override { ++ranges; }
  void update(methods::Replica& replica, const methods::StepInfo& info) override {
    losses.push_back(info.loss);
    if (updates++ % 2 == 0) replica.apply_gradients(info.lr);
  }
  void materialize(methods::Replica&) override {}
  void finish(methods::Replica&, methods::Ending) override {}
  void visit_state(methods::StateVisitor&) override {}

  int updates = 0;
  int ranges = 0;
  std::vector<double> losses;
};

TEST(TrainingStep, LearnsNothingFromAProbeButItsLoss) {
  const data::ArrayDataset data = small_images(24);
  const BatchTensors batch = batch_of(data, 0, 24);
  PlainModel model;
  methods::Replica replica(model, {});
  Prober prober;
  TrainingStep step(model, replica, prober, {});
  ClassificationSums sums;
  step.run(batch, 24, {0, 0.1}, sums);
  const at::Tensor trained = replica.parameters().clone();
  const int ranges = prober.ranges;
  ClassificationSums probed;
  step.run(batch, 24, {1, 0.1}, probed);
  EXPECT_TRUE(replica.parameters().equal(trained));
  EXPECT_EQ(prober.ranges, ranges);
  ASSERT_EQ(prober.losses.size(), 2U);
  EXPECT_TRUE(std::isnan(prober.losses[0]));
  EXPECT_NEAR(prober.losses[1], probed.values().loss / 24, 1e-6);
  EXPECT_LT(prober.losses[1], sums.values().loss / 24);  // the step before has helped
}

TEST(TrainingStep, InPartsEqualsOnePassOverTheWholeBatch) {
  const data::ArrayDataset data = small_images(24);
  const BatchTensors batch = batch_of(data, 0, 24);
  const at::Tensor whole = after_steps<PlainModel>(batch, 1);
  ASSERT_FALSE(whole.equal(after_steps<PlainModel>(batch, 1, {})));
  for (const std::int64_t parts : {2, 3, 24}) {
    const at::Tensor in_parts = after_steps<PlainModel>(batch, parts);
    EXPECT_LT((in_parts - whole).abs().max().item<double>(), 1e-5) << parts;
  }
}

TEST(TrainingStep, PartsOfUnequalSizeCountByTheirSamples) {
  const data::ArrayDataset data = small_images(23);
  for (const std::int64_t samples : {1, 5, 23}) {
    const BatchTensors batch = batch_of(data, 0, samples);
    const at::Tensor whole = after_steps<PlainModel>(batch, 1);
    for (const std::int64_t parts : {2, 4, 7}) {
      const at::Tensor in_parts = after_steps<PlainModel>(batch, parts);
      EXPECT_LT((in_parts - whole).abs().max().item<double>(), 1e-5)
          << samples << " samples in " << parts;
    }
  }
}

TEST(TrainingStep, ReportsTheMeanLossOfTheWholeBatch) {
  const data::ArrayDataset data = small_images(23);
  const BatchTensors batch = batch_of(data, 0, 23);
  PlainModel model;
  const double expected =
      at::cross_entropy_loss(model.forward(batch.inputs), batch.labels).item<double>();
  methods::Replica replica(model, {});
  const auto method = methods::methods().make("local", methods::MethodOptions{});
  TrainingStep step(model, replica, *method, {.pass_samples = 3});
  ClassificationSums sums;
  step.run(batch, batch.labels.size(0), {0, 0.1}, sums);
  EXPECT_NEAR(sums.values().loss / 23, expected, 1e-5);
}

TEST(TrainingStep, DropsTheSameUnitsAtTheSameStepWhateverCameBefore) {
  const data::ArrayDataset data = small_images(16);
  const BatchTensors batch = batch_of(data, 0, 16);
  EXPECT_TRUE(after_steps<NoisyModel>(batch, 1, {5}).equal(after_steps<NoisyModel>(batch, 1, {5})));
  EXPECT_FALSE(
      after_steps<NoisyModel>(batch, 1, {5}).equal(after_steps<NoisyModel>(batch, 1, {6})));

  // A second object whose generator has been used for something else in between.
  NoisyModel model;
  methods::Replica replica(model, {});
  const auto method = methods::methods().make("local", methods::MethodOptions{});
  TrainingStep step(model, replica, *method, {});
  at::empty({99}).normal_(0, 1, model.store().generator());
  ClassificationSums sums;
  step.run(batch, batch.labels.size(0), {5, 0.1}, sums);
  EXPECT_TRUE(replica.parameters().equal(after_steps<NoisyModel>(batch, 1, {5})));
}

TEST(TrainingStep, DropsOtherUnitsOnOtherRanksAndSeeds) {
  const data::ArrayDataset data = small_images(16);
  const BatchTensors batch = batch_of(data, 0, 16);
  const auto with = [&](Seed seed, Rank rank) {
    NoisyModel model;
    methods::Replica replica(model, {});
    const auto method = methods::methods().make("local", methods::MethodOptions{});
    TrainingStep step(model, replica, *method, {.seed = seed, .rank = rank});
    ClassificationSums sums;
    step.run(batch, batch.labels.size(0), {0, 0.1}, sums);
    return replica.parameters().clone();
  };
  EXPECT_FALSE(with(1, 0).equal(with(1, 1)));
  EXPECT_FALSE(with(1, 0).equal(with(2, 0)));
}

TEST(TrainingStep, StopsAtALossThatIsNoNumberAndKeepsTheParameters) {
  const data::ArrayDataset data = small_images(16);
  for (const std::int64_t accumulate : {1, 4}) {
    BatchTensors batch = batch_of(data, 0, 16);
    batch.inputs[15].fill_(std::numeric_limits<float>::quiet_NaN());  // in the last part
    PlainModel model;
    methods::Replica replica(model, {});
    const auto method = methods::methods().make("local", methods::MethodOptions{});
    TrainingStep step(model, replica, *method,
                      {.pass_samples = (batch.labels.size(0) + accumulate - 1) / accumulate});
    const at::Tensor before = replica.parameters().clone();
    ClassificationSums sums;
    try {
      step.run(batch, batch.labels.size(0), {42, 0.125}, sums);
      FAIL() << "no error";
    } catch (const RunError& error) {
      EXPECT_THAT(error.what(), HasSubstr("step 42"));
      EXPECT_THAT(error.what(), HasSubstr("0.125"));
      EXPECT_THAT(error.what(), HasSubstr("--lr"));
    }
    EXPECT_TRUE(replica.parameters().equal(before));
    EXPECT_EQ(replica.updates(), 0);
  }
}

TEST(TrainingStep, MeasuresEveryPartOfAStep) {
  const data::ArrayDataset data = small_images(16);
  const BatchTensors batch = batch_of(data, 0, 16);
  PlainModel model;
  methods::Replica replica(model, {});
  const auto method = methods::methods().make("local", methods::MethodOptions{});
  TrainingStep step(model, replica, *method, {});
  ClassificationSums sums;
  const Clock::time_point start = Clock::now();
  step.run(batch, batch.labels.size(0), {0, 0.1}, sums);
  const StepTimes times = step.finish();
  const double wall = seconds_between(start, Clock::now());
  EXPECT_GT(times.compute_seconds, 0);
  EXPECT_GT(times.update_seconds, 0);
  EXPECT_GE(times.exchange_seconds, 0);
  EXPECT_LE(times.total(), wall);
}

}  // namespace
}  // namespace cohort::engine::test
