#include "network/handshake.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "network/crc32c.h"
#include "network/little_endian.h"

namespace cohort::network {
namespace {

constexpr std::size_t kMeaningfulBytes = 18;  // of a greeting; zeros and the note follow
constexpr std::uint32_t kLater = 1;           // detail of a refusal
constexpr std::uint16_t kWantsSharedMemory = 1;
constexpr std::byte kTlsHandshake{22};  // the first byte of what TLS clients say

// Two bytes of roles, flags, two ranks, silence, lane.
void put_greeting(std::byte* to, const Greeting& greeting) {
  to[0] = static_cast<std::byte>(greeting.self.role);
  to[1] = static_cast<std::byte>(greeting.peer.role);
  put_number(to + 2, greeting.shared_memory ? kWantsSharedMemory : std::uint16_t{0});
  put_number(to + 4, static_cast<std::uint32_t>(greeting.self.rank));
  put_number(to + 8, static_cast<std::uint32_t>(greeting.peer.rank));
  put_number(to + 12, static_cast<std::uint32_t>(greeting.silence.count()));
  put_number(to + 16, greeting.lane);
}

std::optional<Identity> identity_of(const JobId& job, std::byte role, std::uint32_t rank) {
  const bool known = role == static_cast<std::byte>(Role::kWorker) ||
                     role == static_cast<std::byte>(Role::kServer);
  if (!known || rank > static_cast<std::uint32_t>(std::numeric_limits<Rank>::max())) {
    return std::nullopt;
  }
  return Identity{job, static_cast<Role>(role), static_cast<Rank>(rank)};
}

std::optional<Greeting> get_greeting(const FrameHeader& header,
                                     std::span<const std::byte> payload) {
  if (payload.size() < kGreetingBytes || header.checksum != crc32c(payload)) return std::nullopt;
  const std::byte* from = payload.data();
  const auto self = identity_of(header.job, from[0], get_number<std::uint32_t>(from + 4));
  const auto peer = identity_of(header.job, from[1], get_number<std::uint32_t>(from + 8));
  const auto flags = get_number<std::uint16_t>(from + 2);
  const auto silence_ms = get_number<std::uint32_t>(from + 12);
  const auto rest = payload.subspan(kMeaningfulBytes, kGreetingBytes - kMeaningfulBytes);
  const auto note = payload.subspan(kGreetingBytes);
  const bool blank =
      std::all_of(rest.begin(), rest.end(), [](std::byte b) { return b == std::byte{0}; });
  if (!self || self->rank == kAnyRank || !peer || flags > kWantsSharedMemory || silence_ms == 0 ||
      !blank) {
    return std::nullopt;
  }
  return Greeting{.self = *self,
                  .peer = *peer,
                  .shared_memory = flags == kWantsSharedMemory,
                  .silence = std::chrono::milliseconds(silence_ms),
                  .lane = get_number<std::uint16_t>(from + 16),
                  .note = {reinterpret_cast<const char*>(note.data()), note.size()}};
}

std::string versions(std::uint16_t theirs) {
  return "it speaks version " + std::to_string(theirs) + " of the protocol, this process version " +
         std::to_string(kProtocolVersion) + "; use the same release of cohort everywhere";
}

// What a stranger, or a refusing peer, says goes to logs and terminals.
std::string printable(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte value : bytes) {
    const char letter = static_cast<char>(value);
    text += letter >= ' ' && letter <= '~' ? letter : '?';
  }
  return text;
}

Bytes sealed_frame(FrameHeader header, std::span<const std::byte> payload, std::size_t padding) {
  header.length = static_cast<std::uint32_t>(payload.size());
  header.checksum = crc32c(payload);
  Bytes frame(kFrameHeaderBytes + payload.size() + padding);
  encode(header, std::span(frame).first<kFrameHeaderBytes>());
  std::copy(payload.begin(), payload.end(), frame.begin() + kFrameHeaderBytes);
  return frame;
}

}  // namespace

Bytes encode_greeting(FrameType type, const Greeting& greeting) {
  COHORT_CHECK(greeting.note.size() <= kMaxNoteBytes, "a note longer than kMaxNoteBytes");
  Bytes payload(kGreetingBytes + greeting.note.size());
  put_greeting(payload.data(), greeting);
  std::memcpy(payload.data() + kGreetingBytes, greeting.note.data(), greeting.note.size());
  const FrameHeader header{.type = type, .job = greeting.self.job};
  return sealed_frame(header, payload, padding_after(payload.size()));
}

Bytes encode_refusal(const JobId& job, std::string_view reason, bool later) {
  const FrameHeader header{.type = kRefuse, .detail = later ? kLater : 0, .job = job};
  return sealed_frame(header, std::as_bytes(std::span(reason.substr(0, kMaxRefusalBytes))), 0);
}

std::variant<std::size_t, Refusal> judge_header(std::span<const std::byte, kFrameHeaderBytes> bytes,
                                                const JobId& job) {
  const auto decoded = decode_any_version(bytes);
  if (const auto* refusal = std::get_if<FrameRefusal>(&decoded)) {
    if (bytes[0] == kTlsHandshake && bytes[1] == std::byte{3}) {
      return Refusal{"not a cohort frame", "it speaks TLS, which is not used at this address"};
    }
    return Refusal{"not a cohort frame", refusal->reason};
  }
  const auto& [version, header] = std::get<VersionedHeader>(decoded);
  if (header.job != job) return Refusal{"wrong job", "it belongs to another job"};
  if (version != kProtocolVersion) return Refusal{"wrong version", versions(version), true};
  if (header.type != kHello || header.length < kGreetingBytes ||
      header.length > kGreetingBytes + kMaxNoteBytes) {
    return Refusal{"damaged hello", "its first frame is no greeting", true};
  }
  return header.length;
}

std::variant<Greeting, Refusal> judge_hello(std::span<const std::byte, kFrameHeaderBytes> header,
                                            std::span<const std::byte> payload,
                                            const Identity& self,
                                            const std::optional<Identity>& certified) {
  const auto length = judge_header(header, self.job);
  if (const auto* refusal = std::get_if<Refusal>(&length)) return *refusal;
  const auto decoded = decode(header);
  const auto greeting =
      get_greeting(std::get<FrameHeader>(decoded), payload.first(std::get<std::size_t>(length)));
  if (!greeting) return Refusal{"damaged hello", "its greeting makes no sense", true};
  if (certified && *certified != greeting->self) {
    return Refusal{"wrong certificate",
                   "it says that it is " + greeting->self.text() +
                       ", but its certificate is that of " + certified->text(),
                   true};
  }
  if (!self.is(greeting->peer)) {
    return Refusal{"wrong address",
                   greeting->self.text() + " looks for " + greeting->peer.text() +
                       ", but this is " + self.text() + "; check the order of the addresses",
                   true};
  }
  return *greeting;
}

std::variant<std::size_t, std::string> judge_answer_header(
    std::span<const std::byte, kFrameHeaderBytes> bytes, const JobId& job) {
  const auto decoded = decode_any_version(bytes);
  if (const auto* refusal = std::get_if<FrameRefusal>(&decoded)) {
    return "its answer is " + refusal->reason;
  }
  const auto& [version, header] = std::get<VersionedHeader>(decoded);
  if (header.job != job) return "it belongs to another job";
  if (header.type == kRefuse && header.length <= kMaxRefusalBytes) return header.length;
  if (version != kProtocolVersion) return versions(version);
  if (header.type == kWelcome && header.length == kGreetingBytes) return header.length;
  return "its answer is no greeting";
}

std::variant<Greeting, Refused, Nonsense> judge_answer(
    std::span<const std::byte, kFrameHeaderBytes> header, std::span<const std::byte> payload,
    const Greeting& hello, const std::optional<Identity>& certified) {
  const auto decoded = decode_any_version(header);
  if (const auto* refusal = std::get_if<FrameRefusal>(&decoded)) return Nonsense{refusal->reason};
  const FrameHeader& frame = std::get<VersionedHeader>(decoded).header;
  if (frame.checksum != crc32c(payload)) return Nonsense{"a payload with a wrong checksum"};
  if (frame.type == kRefuse) return Refused{printable(payload), frame.detail == kLater};
  const auto greeting = get_greeting(frame, payload);
  if (!greeting || (greeting->shared_memory && !hello.shared_memory)) {
    return Nonsense{"its greeting makes no sense"};
  }
  if (certified && (!certified->is(hello.peer) || *certified != greeting->self)) {
    return Nonsense{"its certificate is that of " + certified->text()};
  }
  if (!greeting->self.is(hello.peer) || greeting->peer != hello.self) {
    return Nonsense{"it is " + greeting->self.text()};
  }
  return *greeting;
}

}  // namespace cohort::network
