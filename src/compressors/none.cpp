#include "compressors/none.h"

#include <algorithm>
#include <array>

#include "compressors/wire.h"

namespace cohort::compressors {
namespace {

constexpr std::size_t kCopyBlock = 2048;  // stays in the nearest cache from one pass to the next

}  // namespace

void None::encode(std::span<const float> dense, const MessageKey&, Bytes& wire) {
  const auto bytes = std::as_bytes(dense);
  wire.insert(wire.end(), bytes.begin(), bytes.end());
}

std::size_t None::decode(std::span<const std::byte> wire, const MessageKey&,
                         std::span<float> dense) const {
  detail::check_length(name(), wire, dense.size_bytes());
  for (std::size_t i = 0; i < dense.size(); i += kCopyBlock) {
    const std::size_t count = std::min(kCopyBlock, dense.size() - i);
    const std::byte* from = wire.data() + i * sizeof(float);
    detail::check_finite(name(), from, count);
    std::memcpy(dense.data() + i, from, count * sizeof(float));
  }
  return dense.size_bytes();
}

std::size_t None::decode_add(std::span<const std::byte> wire, const MessageKey&, float weight,
                             std::span<float> dense) const {
  detail::check_length(name(), wire, dense.size_bytes());
  detail::check_finite(name(), wire.data(), dense.size());
  std::array<float, kCopyBlock> values;  // the bytes of a message are not aligned
  for (std::size_t i = 0; i < dense.size(); i += kCopyBlock) {
    const std::size_t count = std::min(kCopyBlock, dense.size() - i);
    std::memcpy(values.data(), wire.data() + i * sizeof(float), count * sizeof(float));
    detail::add_scaled(values.data(), weight, dense.data() + i, count);
  }
  return dense.size_bytes();
}

}  // namespace cohort::compressors
