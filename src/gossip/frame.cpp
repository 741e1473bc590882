#include "gossip/frame.h"

#include <cstring>

#include "core/error.h"

namespace cohort::gossip {
namespace {

constexpr std::uint32_t kMagic = 0x676f'7300;  // the lowest byte is the kind
constexpr std::uint32_t kKinds = 5;

std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9e37'79b9'7f4a'7c15U;
  return hash ^ (hash >> 32);
}

}  // namespace

std::uint64_t gossip_check(std::uint64_t before, std::span<const std::byte> payload) {
  // Against accidents, not against enemies: those are the transport's to keep out. Four lanes, so
  // that the multiplications overlap.
  std::uint64_t lanes[4] = {before + 1, before + 2, before + 3, before + 4};
  std::size_t at = 0;
  for (; at + 32 <= payload.size(); at += 32) {
    for (std::size_t lane = 0; lane < 4; ++lane) {
      std::uint64_t word = 0;
      std::memcpy(&word, payload.data() + at + 8 * lane, 8);
      lanes[lane] = mix(lanes[lane], word);
    }
  }
  std::uint64_t hash = mix(before, payload.size());
  for (; at < payload.size(); ++at) hash = mix(hash, std::to_integer<std::uint64_t>(payload[at]));
  for (const std::uint64_t lane : lanes) hash = mix(hash, lane);
  return hash;
}

Bytes gossip_frame(const GossipHeader& header, std::span<const std::byte> payload) {
  Bytes frame(kGossipHeaderBytes + payload.size());
  const std::uint32_t words[2] = {kMagic | static_cast<std::uint32_t>(header.kind), 0};
  std::memcpy(frame.data(), words, sizeof words);
  std::memcpy(frame.data() + 8, &header.round, 8);
  std::memcpy(frame.data() + 16, &header.check, 8);
  if (!payload.empty()) {
    std::memcpy(frame.data() + kGossipHeaderBytes, payload.data(), payload.size());
  }
  return frame;
}

GossipHeader parse_gossip_header(std::span<const std::byte> frame) {
  std::uint32_t words[2] = {0, 1};
  if (frame.size() >= kGossipHeaderBytes) std::memcpy(words, frame.data(), sizeof words);
  const std::uint32_t kind = words[0] & 0xffU;
  if ((words[0] & ~0xffU) != kMagic || words[1] != 0 || kind >= kKinds) {
    throw PeerError("a frame of gossip is none: " + std::to_string(frame.size()) + " bytes");
  }
  GossipHeader header;
  header.kind = static_cast<GossipKind>(kind);
  std::memcpy(&header.round, frame.data() + 8, 8);
  std::memcpy(&header.check, frame.data() + 16, 8);
  return header;
}

}  // namespace cohort::gossip
