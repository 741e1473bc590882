// The frames between workers and a best-model server. docs/protocol.md tells the whole
// conversation.
//
// The types lie apart from ServerFrame's: no frame of the one conversation can be taken for one of
// the other. `place` counts values of a model. Values travel as float32.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/types.h"
#include "membership/messages.h"
#include "network/frame.h"
#include "swamp/verdict.h"

namespace cohort::swamp {

enum class SwampFrame : network::FrameType {
  // Worker to server.
  // A join of MemberFrame: its job is a SwampSpec.
  kInitial = 160,  // worker 0; place; payload: float32; complete with the last value
  kOffer,          // sequence: number of the offer, from 1, ascending; payload: OfferBody
  kOfferValues,    // sequence: as kOffer, which comes first; place; payload: float32
  kPull,  // sequence: an id, counting up; place: the version that the worker has; detail: a
          // PullKind
  // Server to worker.
  // A joined frame: JoinedSwamp behind the lineage.
  kVerdict = 192,  // sequence: the offer; place: version; detail: VerdictKind; payload: loss f64,
                   // reason
  kNothing,        // sequence: the pull's id; there is no model for this worker
  kModel,          // sequence: the pull's id; place: version; payload: score f64; kValues follow
  kValues,         // sequence: the pull's id; place; payload: float32
};

enum class PullKind : std::uint32_t {
  kPolicy,  // what the policy gives, or nothing
  kStart,   // the best model, or worker 0's initial values; waits for these
  kFinal,   // the best model when all others are done and nothing is left to judge, or nothing
};

// Values travel in pieces of so many bytes at most.
inline constexpr std::size_t kSwampPieceBytes = std::size_t{128} << 10;
inline constexpr std::size_t kSwampPieceValues = kSwampPieceBytes / sizeof(float);

// A worker sends an offer only when fewer than so many before it are without a verdict.
inline constexpr std::uint64_t kOfferWindow = 8;
// So many more wait in the client; the next one waits with its worker.
inline constexpr std::size_t kUnsentOffers = 2;

struct JoinedSwamp {
  bool initialized = false;  // somebody has brought the initial values
  // Offers that the server has, or has judged (their verdicts follow): need not be sent again.
  std::vector<std::uint64_t> known = {};
  friend bool operator==(const JoinedSwamp&, const JoinedSwamp&) = default;
};

Bytes encode(const JoinedSwamp& body);
// Throws PeerError, as all below.
JoinedSwamp decode_joined_swamp(std::span<const std::byte> payload);

struct OfferBody {
  double claim = 0;
  // Offers before this one whose verdicts the worker has not got, ascending: fewer than
  // kOfferWindow. Verdicts of others the server may forget.
  std::vector<std::uint64_t> open = {};
  friend bool operator==(const OfferBody&, const OfferBody&) = default;
};

Bytes encode(const OfferBody& body);
OfferBody decode_offer(std::span<const std::byte> payload, std::uint64_t sequence);

Bytes encode_number(double number);
double decode_number(std::span<const std::byte> payload);  // of exactly eight bytes

// A verdict as header and payload, and back.
network::FrameHeader verdict_header(const OfferVerdict& verdict);
Bytes encode_payload(const OfferVerdict& verdict);
OfferVerdict decode_verdict(const network::FrameHeader& header, std::span<const std::byte> payload);

}  // namespace cohort::swamp
