#include "compressors/top_k.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "compressors/gap_code.h"
#include "compressors/kept.h"
#include "compressors/wire.h"
#include "core/error.h"

namespace cohort::compressors {
namespace {

// The checked indices of `kept` values that stand at the front of `wire`, and the bytes of both.
struct Elements {
  std::vector<std::uint32_t> indices;
  std::size_t bytes = 0;
};

Elements read_elements(std::string_view name, std::span<const std::byte> wire, std::size_t numel,
                       std::size_t kept) {
  const std::size_t value_bytes = kept * sizeof(float);
  detail::check_length(name, wire, value_bytes);
  detail::check_finite(name, wire.data(), kept);
  Elements elements{std::vector<std::uint32_t>(kept), value_bytes};
  elements.bytes += detail::decode_gaps(name, wire.subspan(value_bytes), numel, elements.indices);
  return elements;
}

}  // namespace

void TopK::encode(std::span<const float> dense, const MessageKey&, Bytes& wire) {
  COHORT_CHECK(dense.size() <= std::numeric_limits<std::uint32_t>::max(),
               "top-k takes tensors of less than 2^32 elements");
  const auto indices = selection_.largest(dense, detail::kept(dense.size(), ratio_));
  std::byte* out = detail::grow(wire, indices.size() * sizeof(float));
  for (const std::uint32_t index : indices) {
    detail::store(out, dense[index]);
    out += sizeof(float);
  }
  detail::encode_gaps(indices, dense.size(), wire);
}

std::size_t TopK::decode(std::span<const std::byte> wire, const MessageKey&,
                         std::span<float> dense) const {
  const Elements elements =
      read_elements(name(), wire, dense.size(), detail::kept(dense.size(), ratio_));
  std::fill(dense.begin(), dense.end(), 0.0F);
  const std::byte* in = wire.data();
  for (const std::uint32_t index : elements.indices) {
    dense[index] = detail::load<float>(in);
    in += sizeof(float);
  }
  return elements.bytes;
}

std::size_t TopK::decode_add(std::span<const std::byte> wire, const MessageKey&, float weight,
                             std::span<float> dense) const {
  const Elements elements =
      read_elements(name(), wire, dense.size(), detail::kept(dense.size(), ratio_));
  const std::byte* in = wire.data();
  for (const std::uint32_t index : elements.indices) {
    dense[index] += weight * detail::load<float>(in);
    in += sizeof(float);
  }
  return elements.bytes;
}

double TopK::contraction(std::int64_t numel) const {
  if (numel == 0) return 1;
  return static_cast<double>(detail::kept(static_cast<std::size_t>(numel), ratio_)) /
         static_cast<double>(numel);
}

std::size_t TopK::max_encoded_bytes(std::int64_t numel) const {
  const auto all = static_cast<std::size_t>(numel);
  const std::size_t kept = detail::kept(all, ratio_);
  return kept * sizeof(float) + detail::max_gap_bytes(kept, all);
}

}  // namespace cohort::compressors
