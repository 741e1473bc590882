// What crosses a connection: frames, each a header of 64 bytes and a payload of at most
// kMaxPayload. Numbers are little-endian. docs/protocol.md has the layout and every type.
//
//   offset  0  u32  magic "CHRT"        offset 32  u64  incarnation
//           4  u16  version                    40  u64  sequence
//           6  u16  type                       48  u64  place   (the type says of what)
//           8  u32  payload length             56  u32  checksum of the payload (CRC-32C)
//          12  u32  detail (the type's)        60  u32  checksum of the 60 bytes before
//          16  16   job
//
// Pure functions over bytes: no sockets, no allocation. Whatever the bytes are, decoding ends with
// a header or with a reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include "network/identity.h"

namespace cohort::network {

inline constexpr std::uint32_t kFrameMagic = 0x54524843;  // "CHRT"
inline constexpr std::uint16_t kProtocolVersion = 5;
inline constexpr std::size_t kFrameHeaderBytes = 64;
inline constexpr std::uint32_t kMaxPayload = 1U << 20;

// Zeros that follow a payload in a stream, so that every frame, and with it every payload, begins
// at a multiple of a header. Systems copy half as fast between places that are not equally far from
// such a multiple, and one odd frame would put all that come after it in the wrong place.
constexpr std::size_t padding_after(std::size_t payload) {
  return (kFrameHeaderBytes - payload % kFrameHeaderBytes) % kFrameHeaderBytes;
}

// Types below kFirstFreeType belong to the connection itself (link.h, handshake.h).
using FrameType = std::uint16_t;
inline constexpr FrameType kFirstFreeType = 32;

struct FrameHeader {
  FrameType type = 0;
  std::uint32_t length = 0;  // of the payload in bytes
  std::uint32_t detail = 0;
  JobId job = {};
  std::uint64_t incarnation = 0;
  std::uint64_t sequence = 0;
  std::uint64_t place = 0;
  std::uint32_t checksum = 0;  // of the payload; 0 where the connection itself protects it

  friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};

using FrameHeaderBytes = std::span<std::byte, kFrameHeaderBytes>;

// Fills in magic, version and the header's own checksum.
void encode(const FrameHeader& header, FrameHeaderBytes out);

struct FrameRefusal {
  std::string reason;
};
// Checks magic, version, the header's checksum and the length. Job, incarnation, sequence and type
// are the caller's to check, the payload's checksum once the payload is there.
std::variant<FrameHeader, FrameRefusal> decode(std::span<const std::byte, kFrameHeaderBytes> bytes);

// For the handshake, which must be able to tell a newer version why it is not welcome: magic,
// version, length, job and the header's checksum stand where they do in every version.
struct VersionedHeader {
  std::uint16_t version = kProtocolVersion;
  FrameHeader header;
};
std::variant<VersionedHeader, FrameRefusal> decode_any_version(
    std::span<const std::byte, kFrameHeaderBytes> bytes);

// CRC-32C (Castagnoli), by the processor's instruction where there is one.
std::uint32_t crc32c(std::span<const std::byte> bytes);

}  // namespace cohort::network
