#include "compressors/votes.h"

#include <algorithm>

#include "compressors/wire.h"

namespace cohort::compressors {
namespace {

constexpr const char* kName = "votes";

std::size_t bytes_of_bits(std::size_t numel) { return (numel + 7) / 8; }

// Bit j of byte b is what `test` says of element 8 b + j; whether it said so of any.
template <class Test>
bool pack_bits(std::span<const float> values, std::byte* out, const Test& test) {
  unsigned any = 0;
  for (std::size_t begin = 0; begin < values.size(); begin += 8) {
    const std::size_t count = std::min<std::size_t>(8, values.size() - begin);
    unsigned bits = 0;
    for (std::size_t j = 0; j < count; ++j) {
      bits |= static_cast<unsigned>(test(values[begin + j])) << j;
    }
    out[begin / 8] = static_cast<std::byte>(bits);
    any |= bits;
  }
  return any != 0;
}

unsigned bit(const std::byte* bits, std::size_t i) {
  return std::to_integer<unsigned>(bits[i / 8]) >> (i % 8) & 1;
}

}  // namespace

void pack_votes(std::span<const float> values, Bytes& wire) {
  const std::size_t half = bytes_of_bits(values.size());
  wire.resize(2 * half);
  pack_bits(values, wire.data(), [](float value) { return value < 0; });
  const bool zeros = pack_bits(values, wire.data() + half,
                               [](float value) { return !(value < 0) && !(value > 0); });
  if (!zeros) wire.resize(half);
}

void add_votes(std::span<const std::byte> wire, std::span<float> sums) {
  const std::size_t half = bytes_of_bits(sums.size());
  if (wire.size() != half && wire.size() != 2 * half) {
    detail::refuse(kName, "as many bytes as neither signs nor signs and zeros take");
  }
  const std::byte* const negative = wire.data();
  const std::byte* const zero = wire.size() == half ? nullptr : negative + half;
  for (std::size_t b = 0; zero != nullptr && b < half; ++b) {
    if ((negative[b] & zero[b]) != std::byte{0}) detail::refuse(kName, "a zero with a sign");
  }
  const std::size_t tail = sums.size() % 8;
  for (const std::byte* bits : {negative, zero}) {
    if (tail != 0 && bits != nullptr && std::to_integer<unsigned>(bits[half - 1]) >> tail != 0) {
      detail::refuse(kName, "bits set after the last element");
    }
  }
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const unsigned none = zero == nullptr ? 0 : bit(zero, i);
    sums[i] += 1.0F - static_cast<float>(2 * bit(negative, i) + none);
  }
}

}  // namespace cohort::compressors
