// What every compressor writes, pinned: machines with other instructions and builds by other
// compilers must agree bit for bit, or ranks drift apart.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>

#include "compressors/variants.h"
#include "core/random.h"

namespace cohort::compressors {
namespace {

std::uint64_t digest(std::uint64_t state, std::span<const std::byte> bytes) {
  for (const std::byte byte : bytes) {  // FNV-1a
    state = (state ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3;
  }
  return state;
}

// Without any function of a mathematics library, whose last bits differ.
std::vector<float> plain_values(std::size_t numel) {
  RandomStream random(7, "plain");
  std::vector<float> values(numel);
  for (float& value : values) {
    double sum = 0;
    for (int i = 0; i < 4; ++i) sum += random.uniform() - 0.5;
    value = static_cast<float>(sum);
  }
  return values;
}

TEST(SameBits, OfEveryCompressorOnEveryMachine) {
  const std::map<std::string, std::uint64_t> expected = {
      {"none", 0xf2fc2c0ffdb67578}, {"fp16", 0x337c24295c232b66},  {"bf16", 0x334c61e96c59481e},
      {"sign", 0x252a25a6ac94eb95}, {"top-k", 0x24ee0e094b9ab70f}, {"random-k", 0x733ad3cff00da3ef},
      {"qsgd", 0xcfb920ad446b0c04},
  };
  for (const auto& [name, digest_of_all] : expected) {
    const auto compressor = compressors().make(name, {.seed = 11, .ratio = 0.97, .bits = 6});
    std::uint64_t state = 0xcbf29ce484222325;
    for (const std::size_t numel : {1, 15, 200, 256, 5000, 66666}) {
      const std::vector<float> values = plain_values(numel);
      const MessageKey key{2, numel, 1};
      Bytes wire;
      compressor->encode(values, key, wire);
      state = digest(state, wire);
      std::vector<float> sum = values;
      compressor->decode_add(wire, key, 0.3F, sum);
      state = digest(state, std::as_bytes(std::span(sum)));
    }
    EXPECT_EQ(state, digest_of_all) << name << " 0x" << std::hex << state;
  }
  EXPECT_EQ(expected.size(), compressors().names().size());
}

}  // namespace
}  // namespace cohort::compressors
