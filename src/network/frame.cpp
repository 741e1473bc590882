#include "network/frame.h"

#include <algorithm>

#include "network/little_endian.h"

namespace cohort::network {
namespace {

constexpr std::size_t kOwnChecksum = 60;  // where it stands, and how much it covers

}  // namespace

void encode(const FrameHeader& header, FrameHeaderBytes out) {
  std::byte* to = out.data();
  put_number(to, kFrameMagic);
  put_number(to + 4, kProtocolVersion);
  put_number(to + 6, header.type);
  put_number(to + 8, header.length);
  put_number(to + 12, header.detail);
  std::copy(header.job.begin(), header.job.end(), to + 16);
  put_number(to + 32, header.incarnation);
  put_number(to + 40, header.sequence);
  put_number(to + 48, header.place);
  put_number(to + 56, header.checksum);
  put_number(to + kOwnChecksum, crc32c(out.first(kOwnChecksum)));
}

std::variant<VersionedHeader, FrameRefusal> decode_any_version(
    std::span<const std::byte, kFrameHeaderBytes> bytes) {
  const std::byte* from = bytes.data();
  if (get_number<std::uint32_t>(from) != kFrameMagic) return FrameRefusal{"not a cohort frame"};
  if (get_number<std::uint32_t>(from + kOwnChecksum) != crc32c(bytes.first(kOwnChecksum))) {
    return FrameRefusal{"damaged header"};
  }
  VersionedHeader result;
  FrameHeader& header = result.header;
  result.version = get_number<std::uint16_t>(from + 4);
  header.type = get_number<FrameType>(from + 6);
  header.length = get_number<std::uint32_t>(from + 8);
  header.detail = get_number<std::uint32_t>(from + 12);
  std::copy(from + 16, from + 32, header.job.begin());
  header.incarnation = get_number<std::uint64_t>(from + 32);
  header.sequence = get_number<std::uint64_t>(from + 40);
  header.place = get_number<std::uint64_t>(from + 48);
  header.checksum = get_number<std::uint32_t>(from + 56);
  if (header.length > kMaxPayload) {
    return FrameRefusal{"a payload of " + std::to_string(header.length) + " bytes, over the " +
                        std::to_string(kMaxPayload) + " allowed"};
  }
  return result;
}

std::variant<FrameHeader, FrameRefusal> decode(
    std::span<const std::byte, kFrameHeaderBytes> bytes) {
  auto decoded = decode_any_version(bytes);
  if (auto* refusal = std::get_if<FrameRefusal>(&decoded)) return std::move(*refusal);
  auto& [version, header] = std::get<VersionedHeader>(decoded);
  if (version != kProtocolVersion) {
    return FrameRefusal{"protocol version " + std::to_string(version) + ", this is version " +
                        std::to_string(kProtocolVersion)};
  }
  return header;
}

}  // namespace cohort::network
