#include "server/wire_format.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/random.h"

namespace cohort::server {
namespace {

// The value of a small float by its definition.
double value_of(std::uint32_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const std::uint32_t mantissa = bits & ((1U << mantissa_bits) - 1);
  const int exponent = static_cast<int>((bits >> mantissa_bits) & ((1U << exponent_bits) - 1));
  const double sign = (bits >> (exponent_bits + mantissa_bits)) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) {
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1U << mantissa_bits), exponent - bias - mantissa_bits);
}

struct Format {
  WireFormat format;
  int exponent_bits, mantissa_bits;
};
constexpr Format kFormats[] = {{WireFormat::kFloat16, 5, 10}, {WireFormat::kBfloat16, 8, 7}};

std::vector<std::uint16_t> encoded(WireFormat format, const std::vector<float>& values) {
  Bytes bytes(values.size() * 2);
  encode_floats(format, values, bytes);
  std::vector<std::uint16_t> out(values.size());
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

std::vector<float> decoded(WireFormat format, const std::vector<std::uint16_t>& values) {
  std::vector<float> out(values.size());
  decode_floats(format, std::as_bytes(std::span(values)), out);
  return out;
}

std::vector<std::uint16_t> all_codes() {
  std::vector<std::uint16_t> codes(65536);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint16_t>(i);
  return codes;
}

TEST(WireFormat, EveryCodeMeansWhatItsDefinitionSays) {
  for (const Format& format : kFormats) {
    const std::vector<float> values = decoded(format.format, all_codes());
    for (std::size_t code = 0; code < values.size(); ++code) {
      const double expected =
          value_of(static_cast<std::uint32_t>(code), format.exponent_bits, format.mantissa_bits);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(values[code])) << code;
      } else {
        ASSERT_EQ(static_cast<double>(values[code]), expected) << code;
      }
    }
  }
}

TEST(WireFormat, EveryCodeSurvivesARoundTrip) {
  for (const Format& format : kFormats) {
    const std::vector<std::uint16_t> codes = all_codes();
    const std::vector<float> values = decoded(format.format, codes);
    const std::vector<std::uint16_t> back = encoded(format.format, values);
    for (std::size_t code = 0; code < codes.size(); ++code) {
      if (std::isnan(values[code])) continue;
      ASSERT_EQ(back[code], codes[code]);
    }
  }
}

// Between neighbouring codes: nearer one wins, and the even one at the middle.
TEST(WireFormat, RoundsToTheNearestAndTiesToEven) {
  for (const Format& format : kFormats) {
    std::vector<float> inputs;
    std::vector<std::uint16_t> expected;
    const std::uint16_t infinity =
        static_cast<std::uint16_t>(((1U << format.exponent_bits) - 1) << format.mantissa_bits);
    for (std::uint16_t code = 0; code + 1 < infinity; ++code) {
      const double low = value_of(code, format.exponent_bits, format.mantissa_bits);
      const double high = value_of(code + 1U, format.exponent_bits, format.mantissa_bits);
      const float middle = static_cast<float>((low + high) / 2);
      if (static_cast<double>(middle) != (low + high) / 2) continue;  // not a float
      for (const int sign : {0, 1}) {
        const auto with_sign = [&](std::uint16_t magnitude) {
          return static_cast<std::uint16_t>(magnitude | (sign << 15));
        };
        const float factor = sign != 0 ? -1.0F : 1.0F;
        inputs.push_back(factor * middle);
        expected.push_back(with_sign(static_cast<std::uint16_t>(code + (code & 1))));
        inputs.push_back(factor * std::nextafter(middle, 0.0F));
        expected.push_back(with_sign(code));
        inputs.push_back(factor * std::nextafter(middle, std::numeric_limits<float>::infinity()));
        expected.push_back(with_sign(static_cast<std::uint16_t>(code + 1)));
      }
    }
    ASSERT_GT(inputs.size(), 100000U);
    EXPECT_EQ(encoded(format.format, inputs), expected);
  }
  EXPECT_EQ(encoded(WireFormat::kFloat16, {65519.99F, 65520.0F, 1e30F}),
            (std::vector<std::uint16_t>{0x7bff, 0x7c00, 0x7c00}));
}

TEST(WireFormat, TheInstructionsGiveTheSameBitsAsTheLoop) {
  RandomStream random(9, "bits");
  std::vector<float> values(100003);
  for (float& value : values) value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
  const std::vector<std::uint16_t> codes = encoded(WireFormat::kFloat16, values);
  const std::vector<float> back = decoded(WireFormat::kFloat16, codes);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(codes[i], detail::half_from_float(values[i])) << values[i];
    ASSERT_EQ(std::bit_cast<std::uint32_t>(back[i]),
              std::bit_cast<std::uint32_t>(detail::float_from_half(codes[i])));
  }
}

TEST(WireFormat, FindsWhatIsNotFiniteAnywhere) {
  std::vector<float> values(1000, std::numeric_limits<float>::max());
  EXPECT_TRUE(all_finite(values));
  EXPECT_TRUE(all_finite({}));
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity(), std::bit_cast<float>(0xff800001U)}) {
    for (std::size_t at = 0; at < values.size(); at += 37) {
      values[at] = bad;
      EXPECT_FALSE(all_finite(values));
      values[at] = -0.0F;
    }
  }
}

}  // namespace
}  // namespace cohort::server
