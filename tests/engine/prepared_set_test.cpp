#include "engine/prepared_set.h"

#include <gtest/gtest.h>

#include <numeric>

#include "engine/small_training.h"

namespace cohort::engine::test {
namespace {

TEST(PreparedSet, GivesTheEvaluationOfTheDataSetItself) {
  const data::ArrayDataset data = small_images(50);
  PlainModel model;
  const Evaluation whole = evaluate(model, data, {.batch = 16});
  for (const std::int64_t batch : {1, 7, 50, 64}) {
    const PreparedSet set(data, all_samples(data), {.batch = batch});
    EXPECT_EQ(set.size(), 50);
    for (int times = 0; times < 2; ++times) {
      const Evaluation result = evaluate(model, set);
      EXPECT_NEAR(result.loss, whole.loss, 1e-5);
      EXPECT_EQ(result.top1, whole.top1);
      EXPECT_EQ(result.top5, whole.top5);
      EXPECT_EQ(result.samples, 50);
    }
  }
}

TEST(PreparedSet, GivesTheLossOfEachSampleInItsOrder) {
  const data::ArrayDataset data = small_images(20);
  PlainModel model;
  const PreparedSet forwards(data, all_samples(data), {.batch = 6});
  const std::vector<float> losses = losses_of(model, forwards);
  ASSERT_EQ(losses.size(), 20U);
  const double mean = std::accumulate(losses.begin(), losses.end(), 0.0) / 20;
  EXPECT_NEAR(mean, evaluate(model, data, {.batch = 20}).loss, 1e-5);
  std::vector<std::int64_t> turned = all_samples(data);
  std::reverse(turned.begin(), turned.end());
  std::vector<float> backwards = losses_of(model, PreparedSet(data, turned, {.batch = 4}));
  std::reverse(backwards.begin(), backwards.end());
  for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], backwards[i], 1e-5) << i;
}

TEST(PreparedSet, LeavesTheModelInTheModeItWasIn) {
  const data::ArrayDataset data = small_images(4);
  PlainModel model;
  model.store().set_training(true);
  static_cast<void>(losses_of(model, PreparedSet(data, {3, 1}, {})));
  EXPECT_TRUE(model.store().training());
}

}  // namespace
}  // namespace cohort::engine::test
