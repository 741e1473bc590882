#include "swamp/messages.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <string>

#include "core/error.h"
#include "network/little_endian.h"

namespace cohort::swamp {
namespace {

constexpr std::size_t kNumber = sizeof(std::uint64_t);
constexpr std::size_t kJoinedFixed = 1;
constexpr std::size_t kMaxReason = 1024;

}  // namespace

Bytes encode(const JoinedSwamp& body) {
  Bytes bytes(kJoinedFixed + kNumber * body.known.size());
  bytes[0] = std::byte{body.initialized};
  std::size_t at = kJoinedFixed;
  for (const std::uint64_t sequence : body.known) {
    network::put_number(bytes.data() + at, sequence);
    at += kNumber;
  }
  return bytes;
}

JoinedSwamp decode_joined_swamp(std::span<const std::byte> payload) {
  const std::size_t rest = payload.size() - std::min(payload.size(), kJoinedFixed);
  const bool sound = payload.size() >= kJoinedFixed && rest % kNumber == 0 &&
                     rest / kNumber <= kOfferWindow && payload[0] <= std::byte{1};
  if (!sound) throw PeerError("the answer to a join makes no sense");
  JoinedSwamp body{.initialized = payload[0] == std::byte{1}, .known = {}};
  for (std::size_t at = kJoinedFixed; at < payload.size(); at += kNumber) {
    body.known.push_back(network::get_number<std::uint64_t>(payload.data() + at));
  }
  return body;
}

Bytes encode(const OfferBody& body) {
  Bytes bytes = encode_number(body.claim);
  bytes.resize(kNumber * (1 + body.open.size()));
  for (std::size_t i = 0; i < body.open.size(); ++i) {
    network::put_number(bytes.data() + kNumber * (i + 1), body.open[i]);
  }
  return bytes;
}

OfferBody decode_offer(std::span<const std::byte> payload, std::uint64_t sequence) {
  if (payload.size() < kNumber || payload.size() % kNumber != 0 ||
      payload.size() > kNumber * kOfferWindow) {
    throw PeerError("an offer makes no sense");
  }
  OfferBody body{.claim = decode_number(payload.first(kNumber)), .open = {}};
  for (std::size_t at = kNumber; at < payload.size(); at += kNumber) {
    body.open.push_back(network::get_number<std::uint64_t>(payload.data() + at));
  }
  body.open.push_back(sequence);
  const bool ascends = std::adjacent_find(body.open.begin(), body.open.end(),
                                          std::greater_equal<>()) == body.open.end();
  if (!ascends || body.open.front() == 0) throw PeerError("an offer's number makes no sense");
  body.open.pop_back();
  return body;
}

Bytes encode_number(double number) {
  Bytes bytes(kNumber);
  network::put_number(bytes.data(), std::bit_cast<std::uint64_t>(number));
  return bytes;
}

double decode_number(std::span<const std::byte> payload) {
  if (payload.size() != kNumber)
    throw PeerError("a number of " + std::to_string(payload.size()) + " bytes instead of 8");
  return std::bit_cast<double>(network::get_number<std::uint64_t>(payload.data()));
}

network::FrameHeader verdict_header(const OfferVerdict& verdict) {
  network::FrameHeader header;
  header.sequence = verdict.sequence;
  header.place = verdict.version;
  header.detail = static_cast<std::uint32_t>(verdict.kind);
  return header;
}

Bytes encode_payload(const OfferVerdict& verdict) {
  Bytes bytes = encode_number(verdict.loss);
  const std::string reason = verdict.reason.substr(0, kMaxReason);
  const auto* text = reinterpret_cast<const std::byte*>(reason.data());
  bytes.insert(bytes.end(), text, text + reason.size());
  return bytes;
}

OfferVerdict decode_verdict(const network::FrameHeader& header,
                            std::span<const std::byte> payload) {
  if (header.detail >= kVerdictKinds || payload.size() < kNumber ||
      payload.size() > kNumber + kMaxReason) {
    throw PeerError("a verdict makes no sense");
  }
  OfferVerdict verdict;
  verdict.sequence = header.sequence;
  verdict.kind = static_cast<VerdictKind>(header.detail);
  verdict.loss = decode_number(payload.first(kNumber));
  verdict.version = header.place;
  const std::span<const std::byte> reason = payload.subspan(kNumber);
  verdict.reason.assign(reinterpret_cast<const char*>(reason.data()), reason.size());
  return verdict;
}

}  // namespace cohort::swamp
