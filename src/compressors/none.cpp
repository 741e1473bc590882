#include "compressors/none.h"

#include <cstring>

#include "compressors/wire.h"

namespace cohort {

void None::encode(std::span<const float> dense, Bytes& wire) {
  const auto bytes = std::as_bytes(dense);
  wire.assign(bytes.begin(), bytes.end());
}

void None::decode(std::span<const std::byte> wire, std::span<float> dense) const {
  detail::check_length(name(), wire, dense.size_bytes());
  if (!dense.empty()) std::memcpy(dense.data(), wire.data(), wire.size());
}

}  // namespace cohort
