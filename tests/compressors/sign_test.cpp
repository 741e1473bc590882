#include "compressors/sign.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include "compressors/vectors.h"
#include "core/clock.h"
#include "core/error.h"

namespace cohort::compressors {
namespace {

TEST(Sign, WritesTheBytesItsHeaderDescribes) {
  Sign sign;
  Bytes wire;
  sign.encode(std::vector<float>{1, -2, 3, -4, 0, 5, 6, 7, -8, 9}, {}, wire);
  ASSERT_EQ(wire.size(), 6U);
  float scale = 0;
  std::memcpy(&scale, wire.data(), 4);
  EXPECT_EQ(scale, 4.5F);
  EXPECT_EQ(wire[4], std::byte{0b00001010});
  EXPECT_EQ(wire[5], std::byte{0b00000001});
}

TEST(Sign, DecodesToTheMeanMagnitudeWithEachElementsSign) {
  Sign sign;
  for (const auto& [name, values] : test_vectors()) {
    double sum = 0;
    for (const float value : values) sum += std::abs(static_cast<double>(value));
    Bytes wire;
    sign.encode(values, {}, wire);
    std::vector<float> decoded(values.size());
    sign.decode(wire, {}, decoded);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double magnitude = sum / static_cast<double>(values.size());
      EXPECT_NEAR(decoded[i], std::signbit(values[i]) ? -magnitude : magnitude, 1e-6 * magnitude)
          << name;
    }
  }
}

TEST(Sign, ContractsGaussianVectorsByTwoOverPi) {
  Sign sign;
  const std::vector<float> values = gaussian(100000, 9);
  Bytes wire;
  sign.encode(values, {}, wire);
  std::vector<float> decoded(values.size());
  sign.decode(wire, {}, decoded);
  EXPECT_NEAR(squared_distance(values, decoded) / squared_norm(values), 1 - 2 / std::numbers::pi,
              0.01);
}

TEST(Sign, RefusesImpossibleScalesAndStrayBits) {
  Sign sign;
  Bytes wire;
  sign.encode(gaussian(10, 1), {}, wire);
  std::vector<float> decoded(10);
  for (const float scale : {std::numeric_limits<float>::quiet_NaN(), -1.0F, -0.0F,
                            std::numeric_limits<float>::infinity()}) {
    Bytes bad = wire;
    std::memcpy(bad.data(), &scale, sizeof scale);
    EXPECT_THROW(sign.decode(bad, {}, decoded), PeerError) << scale;
  }
  for (int bit = 2; bit < 8; ++bit) {
    Bytes bad = wire;
    bad.back() |= static_cast<std::byte>(1 << bit);
    EXPECT_THROW(sign.decode(bad, {}, decoded), PeerError) << bit;
  }
}

TEST(Sign, EncodesMillionsOfElementsInMilliseconds) {
  Sign sign;
  const std::vector<float> values = gaussian(4 << 20, 1);
  std::vector<float> decoded(values.size());
  Bytes wire;
  double encode_seconds = 1;
  double decode_seconds = 1;
  for (int run = 0; run < 3; ++run) {
    const auto start = Clock::now();
    wire.clear();
    sign.encode(values, {}, wire);
    const auto middle = Clock::now();
    sign.decode(wire, {}, decoded);
    encode_seconds = std::min(encode_seconds, seconds_between(start, middle));
    decode_seconds = std::min(decode_seconds, seconds_between(middle, Clock::now()));
  }
  RecordProperty("encode_microseconds", static_cast<int>(encode_seconds * 1e6));
  RecordProperty("decode_microseconds", static_cast<int>(decode_seconds * 1e6));
  // A few milliseconds each when built to be fast; the limit allows for sanitizers.
  EXPECT_LT(encode_seconds, 0.9);
  EXPECT_LT(decode_seconds, 0.9);
}

}  // namespace
}  // namespace cohort::compressors
