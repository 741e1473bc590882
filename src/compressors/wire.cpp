#include "compressors/wire.h"

#include <string>

#include "core/error.h"

namespace cohort::detail {

void check_length(std::string_view compressor, std::span<const std::byte> wire,
                  std::size_t expected) {
  if (wire.size() == expected) return;
  refuse(compressor, std::to_string(wire.size()) + " bytes instead of " + std::to_string(expected));
}

void refuse(std::string_view compressor, std::string_view what) {
  throw PeerError("a peer's message encoded by '" + std::string(compressor) + "' has " +
                  std::string(what));
}

}  // namespace cohort::detail
