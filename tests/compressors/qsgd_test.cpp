#include "compressors/qsgd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "compressors/vectors.h"
#include "core/error.h"

namespace cohort::compressors {
namespace {

float norm_on(const Bytes& wire) {
  float norm = 0;
  std::memcpy(&norm, wire.data(), sizeof norm);
  return norm;
}

// Bit `bit` of the bytes after the header.
unsigned bit_at(const Bytes& wire, std::size_t bit) {
  return std::to_integer<unsigned>(wire.at(5 + bit / 8)) >> bit % 8 & 1;
}

// The signed levels on the wire, bit by bit from the description in packing.h.
std::vector<int> levels_on(const Bytes& wire, std::size_t numel) {
  const std::size_t width = std::to_integer<std::size_t>(wire.at(4)) + 1;
  std::vector<int> levels;
  for (std::size_t i = 0; i < numel; ++i) {
    const std::size_t block = i / 256;
    unsigned code = 0;
    for (std::size_t b = 0; b < width; ++b) {
      std::size_t bit = 0;
      if (block < numel / 256) {
        const std::size_t in_stream = i % 256 / 8 * width + b;
        const std::size_t word = 8 * (in_stream / 32) + i % 8;
        bit = (block * 8 * width + word) * 32 + in_stream % 32;
      } else {
        bit = block * 256 * width + i % 256 * width + b;
      }
      code |= bit_at(wire, bit) << b;
    }
    const int level = static_cast<int>(code & ((1U << (width - 1)) - 1));
    levels.push_back((code >> (width - 1)) != 0 ? -level : level);
  }
  return levels;
}

TEST(Qsgd, PutsEveryElementOnOneOfItsTwoNearestLevels) {
  for (const int bits : {1, 2, 3, 5, 8, 13, 16}) {
    const double s = std::pow(2, bits) - 1;
    Qsgd qsgd(1, bits, false);
    for (const auto& [name, values] : test_vectors()) {
      const double norm = std::sqrt(squared_norm(values));
      if (norm == 0) continue;
      Bytes wire;
      qsgd.encode(values, {0, 1, 2}, wire);
      ASSERT_NEAR(norm_on(wire), norm, 1e-6 * norm) << name;
      const std::vector<int> levels = levels_on(wire, values.size());
      std::vector<float> decoded(values.size());
      qsgd.decode(wire, {}, decoded);
      int largest = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double y = s * values[i] / norm;
        ASSERT_LT(std::abs(levels[i] - y), 1 + 1e-6 * s) << name << " " << i;
        ASSERT_NEAR(decoded[i], levels[i] * (norm / s), 1e-6 * norm) << name;
        largest = std::max(largest, std::abs(levels[i]));
      }
      ASSERT_LE(largest, s);
      // No wider than one more than the largest level would need.
      ASSERT_LE(1 << (std::to_integer<int>(wire[4]) - 1), largest + 1) << name;
    }
  }
}

TEST(Qsgd, RoundsWithTheRightExpectation) {
  const std::vector<float> values = gaussian(700, 3);  // blocks and a rest
  const double norm = std::sqrt(squared_norm(values));
  for (const int bits : {1, 4, 8}) {
    const double s = std::pow(2, bits) - 1;
    constexpr int kDraws = 3000;
    Qsgd qsgd(1, bits, false);
    std::vector<double> mean(values.size());
    double neighbours = 0;  // correlation of the roundings of neighbours
    for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
      Bytes wire;
      qsgd.encode(values, {0, draw, 0}, wire);
      std::vector<float> decoded(values.size());
      qsgd.decode(wire, {}, decoded);
      for (std::size_t i = 0; i < values.size(); ++i) {
        mean[i] += decoded[i] / static_cast<double>(kDraws);
        if (i > 0) {
          neighbours += (decoded[i] - values[i]) * (decoded[i - 1] - values[i - 1]);
        }
      }
    }
    const double unit = norm / s;
    double chi_squared = 0;
    double products = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double y = std::abs(values[i]) / unit;
      const double fraction = y - std::floor(y);
      const double variance = unit * unit * fraction * (1 - fraction);
      EXPECT_NEAR(mean[i], values[i], 6 * std::sqrt(variance / kDraws) + 1e-6);
      chi_squared += std::pow(mean[i] - values[i], 2) / (variance / kDraws);
      products += variance * variance;
    }
    EXPECT_NEAR(chi_squared, 700, 6 * std::sqrt(2 * 700.0)) << bits;
    EXPECT_LT(std::abs(neighbours), 6 * std::sqrt(products * kDraws)) << bits;
  }
}

TEST(Qsgd, DrawsAnewForEveryPartOfTheKeyAndSeed) {
  const std::vector<float> values = gaussian(100, 3);
  const auto bytes = [&](Seed seed, const MessageKey& key) {
    Bytes wire;
    Qsgd(seed, 4, false).encode(values, key, wire);
    return wire;
  };
  const Bytes wire = bytes(1, {0, 1, 2});
  EXPECT_EQ(bytes(1, {0, 1, 2}), wire);
  EXPECT_NE(bytes(2, {0, 1, 2}), wire);
  EXPECT_NE(bytes(1, {1, 1, 2}), wire);
  EXPECT_NE(bytes(1, {0, 2, 2}), wire);
  EXPECT_NE(bytes(1, {0, 1, 3}), wire);
}

TEST(Qsgd, SendsFiveBytesForZerosAndOneElementExactly) {
  Qsgd qsgd(1, 8, false);
  Bytes wire;
  qsgd.encode(std::vector<float>(1000, 0.0F), {}, wire);
  EXPECT_EQ(wire, Bytes(5));
  std::vector<float> values(300, 0.0F);
  values[270] = -3.5F;
  wire.clear();
  qsgd.encode(values, {}, wire);
  std::vector<float> decoded(300);
  qsgd.decode(wire, {}, decoded);
  EXPECT_NEAR(decoded[270], -3.5F, 1e-6);
  decoded[270] = 0;
  for (const float value : decoded) EXPECT_EQ(value, 0.0F);
}

TEST(Qsgd, ShrinksWhenBiased) {
  const std::vector<float> values = gaussian(1000, 3);
  Qsgd plain(1, 2, false);
  Qsgd biased(1, 2, true);
  Bytes wire;
  Bytes other;
  plain.encode(values, {}, wire);
  biased.encode(values, {}, other);
  EXPECT_EQ(wire, other);
  std::vector<float> decoded(1000);
  std::vector<float> shrunk(1000);
  plain.decode(wire, {}, decoded);
  biased.decode(wire, {}, shrunk);
  const double c = 1 / (1 + std::min(1000.0 / 9, std::sqrt(1000.0) / 3));
  EXPECT_NEAR(biased.contraction(1000), c, 1e-12);
  for (std::size_t i = 0; i < 1000; ++i) {
    EXPECT_NEAR(shrunk[i], c * decoded[i], 1e-6 * std::abs(decoded[i]));
  }
}

TEST(Qsgd, RefusesImpossibleNormsWidthsAndStrayBits) {
  Qsgd qsgd(1, 8, false);
  Bytes wire;
  qsgd.encode(gaussian(9, 1), {}, wire);
  std::vector<float> decoded(9);
  for (const float norm : {std::numeric_limits<float>::quiet_NaN(), -1.0F, -0.0F, 0.0F,
                           std::numeric_limits<float>::infinity()}) {
    Bytes bad = wire;
    std::memcpy(bad.data(), &norm, sizeof norm);
    EXPECT_THROW(qsgd.decode(bad, {}, decoded), PeerError) << norm;
  }
  for (const int width : {0, 9, 255}) {
    Bytes bad = wire;
    bad.resize(2000);
    bad[4] = static_cast<std::byte>(width);
    EXPECT_THROW(qsgd.decode(bad, {}, decoded), PeerError) << width;
  }
  Bytes bad = wire;
  bad.back() |= std::byte{0x80};
  EXPECT_THROW(qsgd.decode(bad, {}, decoded), PeerError);
}

}  // namespace
}  // namespace cohort::compressors
