// One contract over every registered compressor.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "compressors/variants.h"
#include "compressors/vectors.h"

namespace cohort::compressors {
namespace {

constexpr MessageKey kKey{3, 17, 2};

class CompressorConformance : public testing::TestWithParam<Variant> {
 protected:
  static std::unique_ptr<Compressor> make(Seed seed = 1) { return GetParam().make(seed); }
};

std::int64_t length(const std::vector<float>& values) {
  return static_cast<std::int64_t>(values.size());
}

Bytes encoded(Compressor& compressor, const std::vector<float>& values, MessageKey key = kKey) {
  Bytes wire;
  compressor.encode(values, key, wire);
  return wire;
}

bool equal_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

TEST_P(CompressorConformance, CarriesTheNameItIsRegisteredBy) {
  EXPECT_EQ(make()->name(), GetParam().name);
}

// Whether messages of one vector differ.
bool draws(Compressor& compressor) {
  const std::vector<float> values = gaussian(1000, 1);
  return encoded(compressor, values, {0, 0, 0}) != encoded(compressor, values, {0, 1, 0});
}

TEST_P(CompressorConformance, KeepsTheContractionItClaims) {
  constexpr std::uint64_t kDraws = 64;
  const auto compressor = make();
  for (const auto& [name, values] : test_vectors()) {
    const double delta = compressor->contraction(length(values));
    ASSERT_GE(delta, 0) << name;
    ASSERT_LE(delta, 1) << name;
    const double norm = squared_norm(values);
    std::vector<float> decoded(values.size());
    double sum = 0;
    double squares = 0;
    for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
      const Bytes wire = encoded(*compressor, values, {1, draw, 0});
      compressor->decode(wire, {1, draw, 0}, decoded);
      const double error =
          norm == 0 ? squared_distance(values, decoded) : squared_distance(values, decoded) / norm;
      sum += error;
      squares += error * error;
    }
    if (delta == 0) continue;
    const double mean = sum / kDraws;
    // The claim is about the expectation. An element that holds the whole norm and is seldom drawn
    // gives errors of 0 or 1, whose variance may not show in these draws.
    const double variance =
        std::max(squares / kDraws - mean * mean, draws(*compressor) ? delta * (1 - delta) : 0);
    EXPECT_LE(mean, (norm == 0 ? 0 : 1 - delta) + 1e-6 + 4 * std::sqrt(variance / kDraws)) << name;
  }
}

TEST_P(CompressorConformance, DecodesZeroToZero) {
  const auto compressor = make();
  for (const float zero : {0.0F, -0.0F}) {
    for (const std::size_t numel : {1, 100, 1000}) {
      const Bytes wire = encoded(*compressor, std::vector<float>(numel, zero));
      std::vector<float> decoded(numel, 7.0F);
      compressor->decode(wire, kKey, decoded);
      for (const float value : decoded) EXPECT_EQ(value, 0.0F);
    }
  }
}

TEST_P(CompressorConformance, AppendsWithinItsBoundAndLeavesItsInputAlone) {
  const auto compressor = make();
  for (const auto& [name, values] : test_vectors()) {
    const std::vector<float> input = values;
    Bytes wire(17, std::byte{0xaa});
    compressor->encode(input, kKey, wire);
    EXPECT_TRUE(equal_bits(input, values)) << name;
    EXPECT_EQ(std::count(wire.begin(), wire.begin() + 17, std::byte{0xaa}), 17) << name;
    EXPECT_LE(wire.size() - 17, compressor->max_encoded_bytes(length(values))) << name;
    EXPECT_EQ(wire.size() == 17, values.empty()) << name;
    EXPECT_EQ(Bytes(wire.begin() + 17, wire.end()), encoded(*compressor, values)) << name;
  }
}

TEST_P(CompressorConformance, TakesItsOwnBytesAndNoOthers) {
  const auto compressor = make();
  for (const auto& [name, values] : test_vectors()) {
    Bytes wire = encoded(*compressor, values);
    std::vector<float> alone(values.size());
    EXPECT_EQ(compressor->decode(wire, kKey, alone), wire.size()) << name;
    const std::size_t own = wire.size();
    wire.insert(wire.end(), 33, std::byte{0xff});
    std::vector<float> followed(values.size());
    EXPECT_EQ(compressor->decode(wire, kKey, followed), own) << name;
    EXPECT_TRUE(equal_bits(alone, followed)) << name;
    EXPECT_EQ(compressor->decode_add(wire, kKey, 1, followed), own) << name;
  }
}

TEST_P(CompressorConformance, AddsBitForBitWhatItDecodes) {
  const auto compressor = make();
  for (const auto& [name, values] : test_vectors()) {
    const Bytes wire = encoded(*compressor, values);
    std::vector<float> decoded(values.size());
    compressor->decode(wire, kKey, decoded);
    for (const float weight : {1.0F, -1.0F, 0.3F, 0.0F}) {
      const std::vector<float> before = gaussian(values.size(), 8, 0.5);
      std::vector<float> expected = before;
      for (std::size_t i = 0; i < values.size(); ++i) {
        // Through memory: two roundings, whatever the compiler would like to do.
        volatile float product = weight * decoded[i];
        expected[i] += product;
      }
      std::vector<float> sum = before;
      compressor->decode_add(wire, kKey, weight, sum);
      EXPECT_TRUE(equal_bits(sum, expected)) << name << " times " << weight;
    }
  }
}

TEST_P(CompressorConformance, DecodesToFiniteNumbers) {
  const auto compressor = make();
  constexpr float kMax = std::numeric_limits<float>::max();
  for (const float extreme : {kMax, -kMax, 3.39e38F, 1e-45F, 1e-38F}) {
    for (const std::size_t numel : {1, 3, 300}) {
      for (std::uint64_t sequence = 0; sequence < 8; ++sequence) {
        const MessageKey key{0, sequence, 0};
        const Bytes wire = encoded(*compressor, std::vector<float>(numel, extreme), key);
        std::vector<float> decoded(numel);
        compressor->decode(wire, key, decoded);
        for (const float value : decoded) EXPECT_TRUE(std::isfinite(value)) << extreme;
      }
    }
  }
}

TEST_P(CompressorConformance, GivesEqualBytesForEqualInputSeedAndKey) {
  const auto first = make(7);
  const auto second = make(7);
  encoded(*first, gaussian(100, 1), {0, 1, 2});  // nothing of it is remembered
  for (const auto& [name, values] : test_vectors()) {
    EXPECT_EQ(encoded(*first, values), encoded(*second, values)) << name;
  }
}

TEST_P(CompressorConformance, DecodesAloneWhatAnotherObjectEncoded) {
  const std::vector<float> values = gaussian(1000, 5);
  const auto sender = make();
  const Bytes wire = encoded(*sender, values);
  std::vector<float> here(1000);
  std::vector<float> there(1000);
  sender->decode(wire, kKey, here);
  make()->decode(wire, kKey, there);
  EXPECT_TRUE(equal_bits(here, there));
}

TEST_P(CompressorConformance, IsSparseWhenItSaysSo) {
  const auto compressor = make();
  if (!compressor->sparse()) return;
  std::vector<float> values = gaussian(1000, 5);
  const Bytes wire = encoded(*compressor, values);
  std::vector<float> decoded(1000);
  compressor->decode(wire, kKey, decoded);
  const auto sent = 1000 - std::count(decoded.begin(), decoded.end(), 0.0F);
  EXPECT_EQ(sent, std::max(1L, (10000 - std::lround(10000 * GetParam().options.ratio)) / 10));
  // What was not sent is not touched, not even the sign of a zero.
  std::vector<float> zeros(1000, -0.0F);
  compressor->decode_add(wire, kKey, 1, zeros);
  EXPECT_EQ(std::count_if(zeros.begin(), zeros.end(),
                          [](float value) { return value == 0 && std::signbit(value); }),
            1000 - sent);
}

// Decodes and lets PeerError pass; anything else, and above all a crash, fails the test.
bool accepts(const Compressor& compressor, const Bytes& wire, std::size_t numel) {
  std::vector<float> decoded(numel);
  std::vector<float> sum(numel, 1.5F);
  bool accepted = true;
  try {
    const std::size_t used = compressor.decode(wire, kKey, decoded);
    EXPECT_LE(used, wire.size());
    EXPECT_LE(used, compressor.max_encoded_bytes(static_cast<std::int64_t>(numel)));
    for (const float value : decoded) EXPECT_TRUE(std::isfinite(value));
  } catch (const PeerError&) {
    accepted = false;
  }
  try {
    compressor.decode_add(wire, kKey, 0.5F, sum);
    EXPECT_TRUE(accepted);
  } catch (const PeerError&) {
    EXPECT_FALSE(accepted);
    EXPECT_EQ(std::count(sum.begin(), sum.end(), 1.5F), static_cast<std::ptrdiff_t>(numel));
  }
  return accepted;
}

TEST_P(CompressorConformance, RefusesTooFewBytes) {
  const auto compressor = make();
  for (const std::size_t numel : {1, 100, 1000}) {
    const Bytes wire = encoded(*compressor, gaussian(numel, 6));
    EXPECT_TRUE(accepts(*compressor, wire, numel));
    for (std::size_t size = 0; size < wire.size(); size += 1 + size / 8) {
      EXPECT_FALSE(accepts(*compressor, Bytes(wire.begin(), wire.begin() + size), numel)) << size;
    }
    EXPECT_FALSE(accepts(*compressor, Bytes(wire.begin(), wire.end() - 1), numel));
  }
}

TEST_P(CompressorConformance, SurvivesAnyBytes) {
  const auto compressor = make();
  RandomStream random(1, "fuzz");
  for (int round = 0; round < 3000; ++round) {
    const std::size_t numel = random.below(round % 10 == 0 ? 1000 : 200);
    Bytes wire;
    if (round % 2 == 0) {
      const std::size_t bound = compressor->max_encoded_bytes(static_cast<std::int64_t>(numel));
      wire.resize(random.below(4) == 0 ? random.below(900) : bound);
      for (std::byte& byte : wire) byte = static_cast<std::byte>(random());
    } else {
      compressor->encode(gaussian(numel, random()), kKey, wire);
      for (int flips = 0; flips < 3 && !wire.empty(); ++flips) {
        wire[random.below(wire.size())] ^= static_cast<std::byte>(1U << random.below(8));
      }
    }
    accepts(*compressor, wire, numel);
  }
}

TEST_P(CompressorConformance, DoesNotCrashOnVectorsThatAreNotFinite) {
  const auto compressor = make();
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const std::size_t numel : {1, 64, 5000}) {
      for (const std::size_t count : {std::size_t{1}, numel}) {
        std::vector<float> values = gaussian(numel, 3);
        std::fill_n(values.begin(), count, bad);
        accepts(*compressor, encoded(*compressor, values), numel);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, CompressorConformance, testing::ValuesIn(compressor_variants()),
                         [](const auto& test) { return test.param.label; });

TEST(CompressorRegistry, RefusesOptionsOutOfRangeWithTheNearestValidOnes) {
  const auto message = [](const CompressorOptions& options) -> std::string {
    try {
      compressors().make("none", options);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  const auto ends = [](const std::string& text, const std::string& end) {
    return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
  };
  EXPECT_TRUE(ends(message({.ratio = 1}), " not 1; the nearest valid one is 0.999"));
  EXPECT_TRUE(ends(message({.ratio = -0.5}), " not -0.5; the nearest valid one is 0"));
  EXPECT_TRUE(ends(message({.ratio = std::nan("")}), "the nearest valid one is 0"));
  EXPECT_TRUE(ends(message({.bits = 0}), " not 0; the nearest valid number is 1"));
  EXPECT_TRUE(ends(message({.bits = 17}), " not 17; the nearest valid number is 16"));
  EXPECT_EQ(message({.ratio = 0, .bits = 16}), "");
}

}  // namespace
}  // namespace cohort::compressors
