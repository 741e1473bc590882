// fp16 and bf16, against their definitions in double precision.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "compressors/bf16.h"
#include "compressors/fp16.h"
#include "compressors/vectors.h"
#include "core/error.h"

namespace cohort::compressors {
namespace {

struct Format {
  int significant_bits;
  int least_exponent;  // of a normal number
  double largest;
};

constexpr Format kHalf{11, -14, 65504};
constexpr Format kBfloat{8, -126, 0x1.fep127};

// The nearest number of the format, ties to even, saturated. nearbyint() rounds so.
double nearest(double value, const Format& format) {
  if (value == 0) return value;
  const int exponent = std::max(std::ilogb(value), format.least_exponent);
  const double unit = std::ldexp(1.0, exponent - format.significant_bits + 1);
  const double rounded = std::nearbyint(value / unit) * unit;
  return std::copysign(std::min(std::abs(rounded), format.largest), value);
}

std::vector<float> many_values() {
  std::vector<float> values;
  RandomStream random(1, "halves");
  while (values.size() < 200000) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isfinite(value)) values.push_back(value);
    // Near the range of halves, and half way between two of them.
    values.push_back(static_cast<float>(random.normal() * std::ldexp(1.0, 17 - random.below(45))));
    const auto tie = static_cast<std::uint32_t>(random()) & 0x0fffU;
    values.push_back(std::bit_cast<float>((0x33000000U + (tie << 16)) | 0x1000U));
    values.push_back(std::bit_cast<float>((0x33000000U + (tie << 16)) | 0x8000U));
  }
  values.insert(values.end(), {65504.0F, 65519.0F, 65520.0F, 65536.0F, -1e30F, 0x1p-24F, 0x1p-25F,
                               0x1.8p-25F, std::numeric_limits<float>::max(), 0x1.ffp127F});
  return values;
}

void expect_nearest(Compressor& compressor, const Format& format) {
  const std::vector<float> values = many_values();
  Bytes wire;
  compressor.encode(values, {}, wire);
  ASSERT_EQ(wire.size(), 2 * values.size());
  std::vector<float> decoded(values.size());
  compressor.decode(wire, {}, decoded);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(decoded[i], nearest(values[i], format)) << values[i];
    ASSERT_EQ(std::signbit(decoded[i]), std::signbit(values[i]));
  }
}

TEST(Fp16, RoundsToTheNearestHalfAndSaturates) {
  Fp16 fp16;
  expect_nearest(fp16, kHalf);
}

TEST(Bf16, RoundsToTheNearestAndSaturates) {
  Bf16 bf16;
  expect_nearest(bf16, kBfloat);
}

TEST(Fp16, GivesTheSameBitsWithAndWithoutInstructions) {
  Fp16 fp16;
  const std::vector<float> values = many_values();
  Bytes wire;
  fp16.encode(values, {}, wire);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, wire.data() + 2 * i, 2);
    ASSERT_EQ(half, detail::half_of(values[i])) << values[i];
  }
}

template <class Format16>
void expect_all_patterns(std::uint16_t exponent) {
  Format16 format;
  for (std::uint32_t pattern = 0; pattern < 65536; ++pattern) {
    // Eight of them, for the instructions, and one more.
    Bytes wire;
    for (int copy = 0; copy < 9; ++copy) {
      wire.push_back(static_cast<std::byte>(pattern));
      wire.push_back(static_cast<std::byte>(pattern >> 8));
    }
    std::vector<float> decoded(9);
    if ((pattern & exponent) == exponent) {
      EXPECT_THROW(format.decode(wire, {}, decoded), PeerError);
      continue;
    }
    format.decode(wire, {}, decoded);
    Bytes again;
    format.encode(decoded, {}, again);
    ASSERT_EQ(again, wire) << pattern;
    ASSERT_EQ(decoded[0], decoded[8]);
  }
}

TEST(Fp16, KeepsEveryFiniteHalfAndRefusesTheOthers) { expect_all_patterns<Fp16>(0x7c00); }

TEST(Bf16, KeepsEveryFiniteNumberAndRefusesTheOthers) { expect_all_patterns<Bf16>(0x7f80); }

}  // namespace
}  // namespace cohort::compressors
