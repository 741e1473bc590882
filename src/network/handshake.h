// How two processes become acquainted, as pure functions over bytes: no sockets, no clock.
//
// One frame each way, after TLS's handshake where there is TLS (which has proved that both know the
// token, or hold certificates of the job), and nothing else before the users' own frames. Whoever
// connects says all that decides whether it is let in (kHello): who it is and whom it wants, which
// of the listener's lanes, and a note of its user's. The other welcomes it, saying the same of
// itself (kWelcome), or says why not (kRefuse) if it knows at least the job: for good, or for now.
// To anyone else it says nothing. Nothing is read beyond these frames; their length is bounded.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "core/types.h"
#include "network/frame.h"
#include "network/identity.h"

namespace cohort::network {

// Every type that belongs to the connection itself.
inline constexpr FrameType kHello = 1;
inline constexpr FrameType kWelcome = 2;
inline constexpr FrameType kRefuse = 3;
inline constexpr FrameType kHeartbeat = 4;
inline constexpr FrameType kGoodbye = 5;  // nothing comes after it
inline constexpr FrameType kRoom = 6;     // the ring, which was full, has room again

inline constexpr std::size_t kGreetingBytes = 64;  // without the note; 18 of them mean something
inline constexpr std::size_t kMaxNoteBytes = 1024;
inline constexpr std::size_t kMaxRefusalBytes = 512;

// The payload of kHello and kWelcome.
struct Greeting {
  Identity self;                         // who speaks
  Identity peer;                         // to whom
  bool shared_memory = false;            // hello: it is wanted; welcome: its descriptor comes along
  std::chrono::milliseconds silence{0};  // after which the speaker gives the other up
  std::uint16_t lane = 0;                // hello: what the connection is for, as both users count
  std::string note = {};                 // hello: what its user says; the listener's judges it

  friend bool operator==(const Greeting&, const Greeting&) = default;
};

// With zeros after the note up to a multiple of 64, like every frame.
Bytes encode_greeting(FrameType type, const Greeting& greeting);
// `later`: the peer is to try again.
Bytes encode_refusal(const JobId& job, std::string_view reason, bool later);

// Why a connection ends before it is established.
struct Refusal {
  std::string kind;    // short, one of few, for counting
  std::string detail;  // for the log, and for the peer if it is told
  bool tell = false;   // the peer knows the job: it may hear why
  bool later = false;  // it is welcome, but not yet
};

// Whoever listens: how long a payload the first header announces, padding apart, for a job.
std::variant<std::size_t, Refusal> judge_header(std::span<const std::byte, kFrameHeaderBytes> bytes,
                                                const JobId& job);
// And the whole frame, padded or not. `certified`: who the peer is by its certificate, if it has
// one.
std::variant<Greeting, Refusal> judge_hello(std::span<const std::byte, kFrameHeaderBytes> header,
                                            std::span<const std::byte> payload,
                                            const Identity& self,
                                            const std::optional<Identity>& certified);

// Whoever connects: how long a payload the answer's header announces, or what is wrong.
std::variant<std::size_t, std::string> judge_answer_header(
    std::span<const std::byte, kFrameHeaderBytes> bytes, const JobId& job);

struct Refused {
  std::string reason;  // as the peer said it, made printable
  bool later = false;
};
struct Nonsense {
  std::string reason;
};
// The answer to `hello`.
std::variant<Greeting, Refused, Nonsense> judge_answer(
    std::span<const std::byte, kFrameHeaderBytes> header, std::span<const std::byte> payload,
    const Greeting& hello, const std::optional<Identity>& certified);

}  // namespace cohort::network
