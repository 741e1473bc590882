// How two processes become acquainted, as pure functions over bytes: no sockets, no clock.
//
// Whoever connects says who it is and whom it wants (kHello); the other welcomes it, saying the
// same of itself (kWelcome), or says why not (kRefuse) if it knows at least the job. To anyone else
// it says nothing. Nothing is read beyond these frames; both are of fixed or bounded length.
#pragma once

#include <array>
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

namespace cohort {

// Every type that belongs to the connection itself.
inline constexpr FrameType kHello = 1;
inline constexpr FrameType kWelcome = 2;
inline constexpr FrameType kRefuse = 3;
inline constexpr FrameType kHeartbeat = 4;
inline constexpr FrameType kGoodbye = 5;  // nothing comes after it
inline constexpr FrameType kRoom = 6;     // the ring, which was full, has room again

inline constexpr std::size_t kGreetingBytes =
    64;  // of which 16 mean something; see padding_after()
inline constexpr std::size_t kMaxRefusalBytes = 512;

// The payload of kHello and kWelcome.
struct Greeting {
  Identity self;                         // who speaks
  Identity peer;                         // to whom
  bool shared_memory = false;            // hello: it is wanted; welcome: its descriptor comes along
  std::chrono::milliseconds silence{0};  // after which the speaker gives the other up

  friend bool operator==(const Greeting&, const Greeting&) = default;
};

using GreetingFrame = std::array<std::byte, kFrameHeaderBytes + kGreetingBytes>;
GreetingFrame encode_greeting(FrameType type, const Greeting& greeting);
Bytes encode_refusal(const JobId& job, std::string_view reason);

// Why a connection ends before it is established.
struct Refusal {
  std::string kind;    // short, one of few, for counting
  std::string detail;  // for the log, and for the peer if it is told
  bool tell = false;   // the peer knows the job: it may hear why
};

// Whoever listens: what the first header says, for a job.
std::optional<Refusal> judge_header(std::span<const std::byte, kFrameHeaderBytes> bytes,
                                    const JobId& job);
// And the whole frame, after that. `certified`: who the peer is by its certificate, if it has one.
std::variant<Greeting, Refusal> judge_hello(std::span<const std::byte, kFrameHeaderBytes> header,
                                            std::span<const std::byte, kGreetingBytes> payload,
                                            const Identity& self,
                                            const std::optional<Identity>& certified);

// Whoever connects: how long a payload the answer's header announces, or what is wrong.
std::variant<std::size_t, std::string> judge_answer_header(
    std::span<const std::byte, kFrameHeaderBytes> bytes, const JobId& job);

struct Refused {
  std::string reason;  // as the peer said it, made printable
};
struct Nonsense {
  std::string reason;
};
// The answer to `hello`.
std::variant<Greeting, Refused, Nonsense> judge_answer(
    std::span<const std::byte, kFrameHeaderBytes> header, std::span<const std::byte> payload,
    const Greeting& hello, const std::optional<Identity>& certified);

}  // namespace cohort
