// One contract over every registered compressor.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "compressors/registry.h"
#include "compressors/vectors.h"

namespace cohort {
namespace {

class CompressorConformance : public testing::TestWithParam<CompressorRegistry::Entry> {
 protected:
  static std::unique_ptr<Compressor> make(Seed seed = 1) {
    return GetParam().make(CompressorOptions{.seed = seed});
  }
};

std::int64_t length(const std::vector<float>& values) {
  return static_cast<std::int64_t>(values.size());
}

TEST_P(CompressorConformance, CarriesTheNameItIsRegisteredBy) {
  EXPECT_EQ(make()->name(), GetParam().name);
}

TEST_P(CompressorConformance, KeepsTheContractionItClaims) {
  constexpr int kDraws = 64;
  const auto compressor = make();
  for (const auto& [name, values] : test_vectors()) {
    const double delta = compressor->contraction(length(values));
    ASSERT_GT(delta, 0) << name;
    ASSERT_LE(delta, 1) << name;
    const double norm = squared_norm(values);
    Bytes wire;
    std::vector<float> decoded(values.size());
    double sum = 0;
    double squares = 0;
    for (int draw = 0; draw < kDraws; ++draw) {
      compressor->encode(values, wire);
      compressor->decode(wire, decoded);
      const double error =
          norm == 0 ? squared_distance(values, decoded) : squared_distance(values, decoded) / norm;
      sum += error;
      squares += error * error;
    }
    const double mean = sum / kDraws;
    const double variance = std::max(0.0, squares / kDraws - mean * mean);
    // The claim is about the expectation; a compressor that draws nothing has no variance.
    EXPECT_LE(mean, (norm == 0 ? 0 : 1 - delta) + 1e-6 + 4 * std::sqrt(variance / kDraws)) << name;
  }
}

TEST_P(CompressorConformance, DecodesZeroToZero) {
  const auto compressor = make();
  for (const float zero : {0.0F, -0.0F}) {
    const std::vector<float> values(100, zero);
    Bytes wire;
    compressor->encode(values, wire);
    std::vector<float> decoded(100, 7.0F);
    compressor->decode(wire, decoded);
    for (const float value : decoded) EXPECT_EQ(value, 0.0F);
  }
}

TEST_P(CompressorConformance, LeavesItsInputAloneAndStaysWithinItsBound) {
  const auto compressor = make();
  for (const auto& [name, values] : test_vectors()) {
    std::vector<float> input = values;
    Bytes wire(17, std::byte{0xaa});  // what was there before must not matter
    compressor->encode(input, wire);
    EXPECT_TRUE(values.empty() ||
                std::memcmp(input.data(), values.data(), values.size() * sizeof(float)) == 0)
        << name;
    EXPECT_LE(wire.size(), compressor->max_encoded_bytes(length(values))) << name;
  }
}

TEST_P(CompressorConformance, GivesEqualBytesForEqualInputAndSeed) {
  const auto first = make(7);
  const auto second = make(7);
  for (const auto& [name, values] : test_vectors()) {
    Bytes one(3, std::byte{1});
    Bytes other;
    first->encode(values, one);
    second->encode(values, other);
    EXPECT_EQ(one, other) << name;
  }
}

TEST_P(CompressorConformance, DecodesAloneWhatAnotherObjectEncoded) {
  const std::vector<float> values = gaussian(1000, 5);
  const auto sender = make(1);
  Bytes wire;
  sender->encode(values, wire);
  std::vector<float> here(1000);
  std::vector<float> there(1000);
  sender->decode(wire, here);
  make(2)->decode(wire, there);
  EXPECT_EQ(here, there);
}

// Decodes and lets PeerError pass; anything else, and above all a crash, fails the test.
bool accepts(const Compressor& compressor, const Bytes& wire, std::size_t numel) {
  std::vector<float> decoded(numel);
  try {
    compressor.decode(wire, decoded);
  } catch (const PeerError&) {
    return false;
  }
  return true;
}

TEST_P(CompressorConformance, RefusesWrongLengths) {
  const auto compressor = make();
  Bytes wire;
  compressor->encode(gaussian(100, 6), wire);
  EXPECT_FALSE(accepts(*compressor, {}, 100));
  Bytes shorter(wire.begin(), wire.end() - 1);
  EXPECT_FALSE(accepts(*compressor, shorter, 100));
  Bytes longer = wire;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(accepts(*compressor, longer, 100));
  EXPECT_FALSE(accepts(*compressor, Bytes(compressor->max_encoded_bytes(100) + 1), 100));
  EXPECT_FALSE(accepts(*compressor, wire, 0));
  EXPECT_TRUE(accepts(*compressor, wire, 100));
}

TEST_P(CompressorConformance, SurvivesAnyBytes) {
  const auto compressor = make();
  RandomStream random(1, "fuzz");
  for (int round = 0; round < 5000; ++round) {
    const std::size_t numel = random.below(200);
    Bytes wire;
    if (round % 2 == 0) {
      const std::size_t bound = compressor->max_encoded_bytes(static_cast<std::int64_t>(numel));
      wire.resize(random.below(4) == 0 ? random.below(900) : bound);
      for (std::byte& byte : wire) byte = static_cast<std::byte>(random());
    } else {
      compressor->encode(gaussian(numel, random()), wire);
      for (int flips = 0; flips < 3 && !wire.empty(); ++flips) {
        wire[random.below(wire.size())] ^= static_cast<std::byte>(1U << random.below(8));
      }
    }
    accepts(*compressor, wire, numel);
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, CompressorConformance,
                         testing::ValuesIn(compressors().entries()), [](const auto& test) {
                           std::string name = test.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace cohort
