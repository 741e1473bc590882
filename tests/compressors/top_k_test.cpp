#include "compressors/top_k.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "compressors/gap_code.h"
#include "compressors/kept.h"
#include "compressors/selection.h"
#include "compressors/vectors.h"
#include "core/error.h"

namespace cohort::compressors {
namespace {

// By sorting everything.
std::vector<std::uint32_t> expected_largest(const std::vector<float>& values, std::size_t count) {
  std::vector<std::uint32_t> indices(values.size());
  std::iota(indices.begin(), indices.end(), 0);
  std::stable_sort(indices.begin(), indices.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::abs(values[a]) > std::abs(values[b]);
  });
  indices.resize(count);
  std::sort(indices.begin(), indices.end());
  return indices;
}

void expect_exact(const std::string& name, const std::vector<float>& values) {
  static detail::Selection selection;  // one for all: nothing of earlier calls may show
  for (const double share : {0.0, 0.0001, 0.01, 0.1, 0.5, 0.97, 1.0}) {
    const auto count = static_cast<std::size_t>(share * static_cast<double>(values.size()));
    const auto found = selection.largest(values, count);
    EXPECT_EQ(std::vector<std::uint32_t>(found.begin(), found.end()),
              expected_largest(values, count))
        << count << " of " << name;
  }
}

TEST(Selection, FindsExactlyTheLargestWithTheLowerIndexFirst) {
  for (const auto& [name, values] : test_vectors()) expect_exact(name, values);
  for (const std::size_t numel : {511, 512, 513, 5000, 20000, 70001}) {
    expect_exact("gaussian", gaussian(numel, 1));
    std::vector<float> few = gaussian(numel, 2);  // so that most are equal to others
    for (float& value : few) value = std::round(2 * value);
    expect_exact("few values", few);
    std::vector<float> rising(numel);
    std::iota(rising.begin(), rising.end(), -100.0F);
    expect_exact("rising", rising);
    std::reverse(rising.begin(), rising.end());
    expect_exact("falling", rising);
  }
}

TEST(Selection, IsNotMisledByWhatASampleShows) {
  // Large where a sample looks and nowhere else, and the other way round.
  for (const std::size_t period : {2, 16, 31, 32, 33, 64, 128}) {
    std::vector<float> inside = gaussian(20000, 3, 0.001);
    std::vector<float> outside = gaussian(20000, 4);
    for (std::size_t i = 0; i < inside.size(); i += period) {
      inside[i] *= 1e6F;
      outside[i] = 0;
    }
    expect_exact("inside", inside);
    expect_exact("outside", outside);
  }
}

TEST(TopK, KeepsWhatADecimalRatioLeaves) {
  // Against arithmetic of whole numbers, with ratios of up to six decimals.
  for (const std::int64_t dropped : {0, 1, 100000, 300000, 500000, 750000, 900000, 937500, 990000,
                                     996000, 999000, 999900, 999999}) {
    const double ratio = static_cast<double>(dropped) / 1e6;
    for (const std::int64_t numel : {1L, 2L, 9L, 10L, 99L, 100L, 999L, 1000L, 4096L, 100000L,
                                     36864L, 270000L, 11173962L, 1000000000L, 4294967295L}) {
      const std::int64_t expected =
          std::max<std::int64_t>(1, numel * (1000000 - dropped) / 1000000);
      EXPECT_EQ(detail::kept(static_cast<std::size_t>(numel), ratio),
                static_cast<std::size_t>(expected))
          << numel << " at " << ratio;
    }
  }
  EXPECT_EQ(detail::kept(1000, 0.9), 100U);
  EXPECT_EQ(detail::kept(0, 0.9), 0U);
}

TEST(TopK, WritesValuesThenGaps) {
  TopK top_k(0.75);  // 2 of 8, gaps with one low bit
  Bytes wire;
  top_k.encode(std::vector<float>{0, 1, 9, -1, 1, 1, -8, 1}, {}, wire);
  ASSERT_EQ(wire.size(), 9U);
  float values[2];
  std::memcpy(values, wire.data(), 8);
  EXPECT_EQ(values[0], 9);
  EXPECT_EQ(values[1], -8);
  // Gap 2: one zero, a one, the low bit 0; gap 3: one zero, a one, the low bit 1.
  EXPECT_EQ(wire[8], std::byte{0b110010});
}

TEST(TopK, TakesAboutEightBitsForAnIndexAtOnePercent) {
  TopK top_k(0.99);
  Bytes wire;
  top_k.encode(gaussian(100000, 1), {}, wire);
  EXPECT_LT((static_cast<double>(wire.size()) - 4000) * 8 / 1000, 8.25);
}

TEST(GapCode, KeepsIndicesWhereverTheyAre) {
  RandomStream random(2, "gaps");
  for (int round = 0; round < 3000; ++round) {
    const std::size_t numel = 1 + random.below(round % 10 == 0 ? 100000 : 300);
    std::vector<std::uint32_t> all(numel);
    std::iota(all.begin(), all.end(), 0);
    const std::size_t count = 1 + random.below(std::min<std::size_t>(numel, 40));
    std::vector<std::uint32_t> indices;
    if (round % 3 == 0) {  // crowded at the end: the longest gap there is
      indices.assign(all.end() - static_cast<std::ptrdiff_t>(count), all.end());
    } else {
      shuffle(std::span(all), random);
      indices.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
      std::sort(indices.begin(), indices.end());
    }
    Bytes wire(3);
    detail::encode_gaps(indices, numel, wire);
    EXPECT_LE(wire.size() - 3, detail::max_gap_bytes(count, numel));
    const std::size_t own = wire.size() - 3;
    wire.insert(wire.end(), 20, std::byte{0xff});
    std::vector<std::uint32_t> decoded(count);
    EXPECT_EQ(detail::decode_gaps("x", std::span(wire).subspan(3), numel, decoded), own);
    ASSERT_EQ(decoded, indices);
  }
}

TEST(GapCode, RefusesIndicesBeyondTheEndAndEndlessZeros) {
  std::vector<std::uint32_t> decoded(3);
  Bytes wire;
  detail::encode_gaps(std::vector<std::uint32_t>{5, 6, 99}, 100, wire);
  EXPECT_EQ(detail::decode_gaps("x", wire, 100, decoded), wire.size());
  // The same parameter, a shorter vector.
  EXPECT_THROW(detail::decode_gaps("x", wire, 99, decoded), PeerError);
  EXPECT_THROW(detail::decode_gaps("x", Bytes(1000), 100, decoded), PeerError);
  EXPECT_THROW(detail::decode_gaps("x", Bytes{}, 100, decoded), PeerError);
  wire.back() |= std::byte{0x80};
  EXPECT_THROW(detail::decode_gaps("x", wire, 100, decoded), PeerError);
}

}  // namespace
}  // namespace cohort::compressors
