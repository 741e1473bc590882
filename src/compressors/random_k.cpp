#include "compressors/random_k.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "compressors/kept.h"
#include "compressors/wire.h"
#include "core/error.h"
#include "core/random.h"

namespace cohort::compressors {

std::vector<std::uint32_t> RandomK::indices(std::size_t numel, const MessageKey& key) const {
  COHORT_CHECK(numel <= std::numeric_limits<std::uint32_t>::max(),
               "random-k takes tensors of less than 2^32 elements");
  const std::size_t kept = detail::kept(numel, ratio_);
  std::vector<std::uint32_t> drawn(kept);
  if (numel == 0) return drawn;
  RandomStream random(seed_, "random-k",
                      {static_cast<std::uint64_t>(key.sender), key.sequence, key.tensor});
  // A bit for every element: draws that hit one again are repeated, and reading the bits in order
  // sorts. Of the taken and the left the fewer are drawn, so at most half the draws are repeated.
  const bool draws_left = kept > numel / 2;
  constexpr std::size_t kWord = 64;
  std::vector<std::uint64_t> words((numel + kWord - 1) / kWord);
  for (std::size_t missing = draws_left ? numel - kept : kept; missing > 0;) {
    const std::uint64_t index = random.below(numel);
    std::uint64_t& word = words[index / kWord];
    const std::uint64_t bit = std::uint64_t{1} << index % kWord;
    missing -= (word & bit) == 0 ? 1 : 0;
    word |= bit;
  }
  std::size_t count = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::uint64_t word = draws_left ? ~words[i] : words[i];
    for (; word != 0 && count < kept; word &= word - 1) {
      drawn[count++] =
          static_cast<std::uint32_t>(i * kWord + static_cast<std::size_t>(std::countr_zero(word)));
    }
  }
  return drawn;
}

void RandomK::encode(std::span<const float> dense, const MessageKey& key, Bytes& wire) {
  const std::vector<std::uint32_t> drawn = indices(dense.size(), key);
  std::byte* out = detail::grow(wire, drawn.size() * sizeof(float));
  const float scale = biased_ || drawn.empty()
                          ? 1.0F
                          : static_cast<float>(static_cast<double>(dense.size()) /
                                               static_cast<double>(drawn.size()));
  constexpr float kFloatMax = std::numeric_limits<float>::max();
  for (const std::uint32_t index : drawn) {
    detail::store(out, std::clamp(scale * dense[index], -kFloatMax, kFloatMax));
    out += sizeof(float);
  }
}

std::size_t RandomK::checked_bytes(std::span<const std::byte> wire, std::size_t numel) const {
  const std::size_t kept = detail::kept(numel, ratio_);
  detail::check_length(name(), wire, kept * sizeof(float));
  detail::check_finite(name(), wire.data(), kept);
  return kept * sizeof(float);
}

std::size_t RandomK::decode(std::span<const std::byte> wire, const MessageKey& key,
                            std::span<float> dense) const {
  const std::size_t bytes = checked_bytes(wire, dense.size());
  std::fill(dense.begin(), dense.end(), 0.0F);
  const std::byte* in = wire.data();
  for (const std::uint32_t index : indices(dense.size(), key)) {
    dense[index] = detail::load<float>(in);
    in += sizeof(float);
  }
  return bytes;
}

std::size_t RandomK::decode_add(std::span<const std::byte> wire, const MessageKey& key,
                                float weight, std::span<float> dense) const {
  const std::size_t bytes = checked_bytes(wire, dense.size());
  const std::byte* in = wire.data();
  for (const std::uint32_t index : indices(dense.size(), key)) {
    dense[index] += weight * detail::load<float>(in);
    in += sizeof(float);
  }
  return bytes;
}

double RandomK::contraction(std::int64_t numel) const {
  if (numel == 0) return 1;
  const auto share = static_cast<double>(detail::kept(static_cast<std::size_t>(numel), ratio_)) /
                     static_cast<double>(numel);
  // Unbiased, E|C(x) - x|^2 = (1/share - 1) |x|^2.
  return biased_ ? share : std::max(0.0, 2 - 1 / share);
}

std::size_t RandomK::max_encoded_bytes(std::int64_t numel) const {
  return detail::kept(static_cast<std::size_t>(numel), ratio_) * sizeof(float);
}

}  // namespace cohort::compressors
