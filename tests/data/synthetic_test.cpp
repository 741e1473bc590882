#include "data/synthetic.h"

#include <cmath>

#include "core/error.h"
#include "data/support.h"

namespace cohort::data::test {
namespace {

TEST(Synthetic, IsAPureFunctionOfSeedSplitAndIndex) {
  const SyntheticDataset one({3, 9, 5}, 7, 100, 11, "train");
  const SyntheticDataset same({3, 9, 5}, 7, 50, 11, "train");
  const SyntheticDataset other_seed({3, 9, 5}, 7, 100, 12, "train");
  const SyntheticDataset other_split({3, 9, 5}, 7, 100, 11, "test");
  EXPECT_EQ(read_sample(one, 42, 1), read_sample(same, 42, 2));
  EXPECT_NE(read_sample(one, 42), read_sample(one, 49));
  EXPECT_NE(read_sample(one, 42), read_sample(other_seed, 42));
  EXPECT_NE(read_sample(one, 42), read_sample(other_split, 42));
  EXPECT_EQ(one.label(42), 0);
  EXPECT_EQ(one.class_names().size(), 7U);
}

// Nearest class mean, estimated from the training split, must classify the test split.
TEST(Synthetic, ClassesCanBeLearned) {
  constexpr int kClasses = 10;
  const SyntheticDataset train({1, 28, 28}, kClasses, 1000, 3, "train");
  const SyntheticDataset test({1, 28, 28}, kClasses, 300, 3, "test");
  std::vector<std::vector<double>> means(kClasses, std::vector<double>(784, 0.0));
  for (std::int64_t i = 0; i < train.size(); ++i) {
    const std::vector<float> sample = read_sample(train, i);
    auto& mean = means[static_cast<std::size_t>(train.label(i))];
    for (std::size_t p = 0; p < 784; ++p) mean[p] += sample[p] / 100.0;
  }
  int right = 0;
  for (std::int64_t i = 0; i < test.size(); ++i) {
    const std::vector<float> sample = read_sample(test, i);
    std::size_t best = 0;
    double least = 1e30;
    for (std::size_t c = 0; c < kClasses; ++c) {
      double distance = 0;
      for (std::size_t p = 0; p < 784; ++p) distance += std::pow(sample[p] - means[c][p], 2);
      if (distance < least) {
        least = distance;
        best = c;
      }
    }
    right += static_cast<std::int64_t>(best) == test.label(i) ? 1 : 0;
  }
  EXPECT_GT(right, 285);
}

TEST(Synthetic, TheNoiseHasMeanZeroAndDeviationOne) {
  const SyntheticDataset data({1, 1, 1}, 1, 50000, 5, "train");
  double sum = 0;
  double squares = 0;
  for (std::int64_t i = 0; i < data.size(); ++i) {
    const double value = read_sample(data, i)[0];
    sum += value;
    squares += value * value;
  }
  const double mean = sum / 50000;  // the one pattern value
  EXPECT_NEAR(squares / 50000 - mean * mean, 1.0, 0.03);
}

TEST(Synthetic, SenselessShapesAreRefused) {
  EXPECT_THROW(SyntheticDataset({0, 1, 1}, 2, 10, 1, "train"), ConfigError);
  EXPECT_THROW(SyntheticDataset({1, 1, 1}, 0, 10, 1, "train"), ConfigError);
  EXPECT_THROW(SyntheticDataset({1, 1, 1}, 2, 0, 1, "train"), ConfigError);
  EXPECT_THROW(SyntheticDataset({60000, 60000, 60000}, 2, 10, 1, "train"), ConfigError);
}

}  // namespace
}  // namespace cohort::data::test
