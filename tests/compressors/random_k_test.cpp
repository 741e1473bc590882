#include "compressors/random_k.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "compressors/vectors.h"

namespace cohort::compressors {
namespace {

TEST(RandomK, DrawsAscendingDistinctElements) {
  for (const double ratio : {0.0, 0.01, 0.4, 0.5, 0.6, 0.9, 0.99, 0.9999}) {
    const RandomK random_k(1, ratio, true);
    for (const std::size_t numel : {1, 2, 63, 64, 65, 1000}) {
      const auto indices = random_k.indices(numel, {0, 1, 2});
      EXPECT_EQ(indices.size(),
                std::max<std::size_t>(1, numel * (10000 - std::lround(10000 * ratio)) / 10000));
      EXPECT_LT(indices.back(), numel);
      EXPECT_EQ(std::adjacent_find(indices.begin(), indices.end(), std::greater_equal<>()),
                indices.end());
    }
  }
}

TEST(RandomK, DrawsOthersForEveryPartOfTheKeyAndSeed) {
  const RandomK random_k(1, 0.9, true);
  const auto indices = random_k.indices(1000, {0, 1, 2});
  EXPECT_EQ(RandomK(1, 0.9, false).indices(1000, {0, 1, 2}), indices);
  EXPECT_NE(RandomK(2, 0.9, true).indices(1000, {0, 1, 2}), indices);
  EXPECT_NE(random_k.indices(1000, {1, 1, 2}), indices);
  EXPECT_NE(random_k.indices(1000, {0, 2, 2}), indices);
  EXPECT_NE(random_k.indices(1000, {0, 1, 3}), indices);
}

TEST(RandomK, DrawsAllElementsEquallyOften) {
  constexpr std::size_t kNumel = 100;
  constexpr int kDraws = 4000;
  for (const double ratio : {0.9, 0.3}) {
    const RandomK random_k(3, ratio, true);
    std::vector<double> counts(kNumel);
    std::size_t kept = 0;
    for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
      const auto indices = random_k.indices(kNumel, {0, draw, 0});
      kept = indices.size();
      for (const std::uint32_t index : indices) ++counts[index];
    }
    const double share = static_cast<double>(kept) / kNumel;
    const double deviation = std::sqrt(kDraws * share * (1 - share));
    double chi_squared = 0;
    for (const double count : counts) {
      EXPECT_NEAR(count, kDraws * share, 5 * deviation);
      chi_squared += std::pow((count - kDraws * share) / deviation, 2);
    }
    // 99 degrees of freedom, up to the factor n / (n - 1): mean 100, deviation 14.
    EXPECT_NEAR(chi_squared, 100, 60);
  }
}

TEST(RandomK, SendsValuesAsTheyAreOrScaledToTheRightExpectation) {
  const std::vector<float> values = gaussian(200, 1);
  for (const bool biased : {true, false}) {
    RandomK random_k(1, 0.9, biased);
    std::vector<double> mean(200);
    for (std::uint64_t draw = 0; draw < 2000; ++draw) {
      const MessageKey key{0, draw, 0};
      Bytes wire;
      random_k.encode(values, key, wire);
      const auto indices = random_k.indices(200, key);
      EXPECT_EQ(wire.size(), 4 * indices.size());
      std::vector<float> decoded(200);
      random_k.decode(wire, key, decoded);
      const float scale = biased ? 1 : 200.0F / static_cast<float>(indices.size());
      for (const std::uint32_t index : indices) EXPECT_EQ(decoded[index], scale * values[index]);
      for (std::size_t i = 0; i < 200; ++i) mean[i] += decoded[i] / 2000.0;
    }
    if (biased) continue;
    for (std::size_t i = 0; i < 200; ++i) {
      EXPECT_NEAR(mean[i], values[i], 5 * std::abs(values[i]) * std::sqrt(10.0 / 2000));
    }
  }
}

}  // namespace
}  // namespace cohort::compressors
