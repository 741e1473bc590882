// The frames between workers and parameter servers. docs/protocol.md tells the whole conversation.
//
// `place` counts elements of the server's arena. Floats travel as the job's WireFormat says.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/types.h"
#include "membership/messages.h"
#include "network/frame.h"

namespace cohort::server {

enum class ServerFrame : network::FrameType {
  // Worker to server.
  // A join of MemberFrame: sequence: pushes answered, which it can repeat; detail: low 32 bits of
  // the version pulled last; its job is a JobSpec.
  kInitialize =
      membership::kFirstWorkerType,  // worker 0; detail: 0 parameters, 1... optimizer slots; place;
                                     // payload: float32
  kInitialized,  // sequence: updates the values have behind them (a resumed run), else 0; payload:
                 // encode_counts() of the pushes of each worker among these
  kCommitted,  // before push `sequence` is replayed; payload: the workers whose gradients made that
               // round; detail as kPush. Nobody: that push is in no model, skip its number
  kPush,       // sequence: from 1 for every incarnation; place; detail: low 32 bits of the version
               // that the gradient was computed at; complete when place + count is the arena's size
  kPull,     // sequence: an id chosen by the worker; place: the push that is to be answered first,
             // which may still be coming; detail: 0 parameters, 1... optimizer slots, or one of
             // the two constants below
  kPersist,  // the replay window is getting full: make a snapshot soon
  // Server to worker.
  // A joined frame: JoinedBody behind the lineage.
  kAck = membership::kFirstServerType,  // sequence: this push and all before are in the model;
                                        // place: those up
                                        // to here are
  // also on disk; detail: staleness of the push; payload: kSync: its round's workers
  kDropped,   // sequence: this push came too late for its round and is in no model
  kRejected,  // sequence: this push holds numbers that are not finite, and is in no model; payload:
              // why
  kDurable,   // place: pushes up to here are on disk
  kValues,  // sequence: the pull's id; place; detail: low 32 bits of the version; payload: elements
  kFinished,     // kSync: the last update has been made; pull and leave
  kEarlyValues,  // as kValues, of the model as it will be if the push that is still coming counts:
                 // they stand once kValues go on where they ended, and mean nothing when those
                 // begin at 0
  kProgress,     // before the kValues of a pull that is exact or waits for the others, and of their
                 // version; sequence: that version; place: updates that it counts and that were
                 // lost; detail: the first worker that is not lost; payload: encode_counts() of
                 // the pushes of each worker in the model
};

// Elements travel in pieces of so many bytes where the connection does not know better.
inline constexpr std::size_t kPieceBytes = std::size_t{512} << 10;

// In kPull's detail: the parameters in float32, once all other workers have left or were given up.
inline constexpr std::uint32_t kPullWhenAlone = 0xfffffffe;

// A pull of the parameters in float32, whatever the job's WireFormat.
inline constexpr std::uint32_t kExactParameters = 0xffffffff;

inline bool names_parameters(std::uint32_t which) {
  return which == 0 || which == kExactParameters || which == kPullWhenAlone;
}

struct JoinedBody {
  std::uint64_t applied = 0;   // pushes of this incarnation that have been answered
  std::uint64_t durable = 0;   // of these, on disk
  std::uint64_t version = 0;   // updates behind the model
  std::uint64_t progress = 0;  // pushes of this worker in the model, of all its incarnations
  bool initialized = false;    // somebody has brought the initial values
  bool keeps_state = false;    // snapshots are made: keep what is not durable for a replay
  // Of the incarnation that the join named as the one before: how many pushes have been answered,
  // and whether the last of them is in the model.
  std::uint64_t applied_before = 0;
  bool in_model_before = false;
  friend bool operator==(const JoinedBody&, const JoinedBody&) = default;
};

Bytes encode(const JoinedBody& body);
// Throws PeerError.
JoinedBody decode_joined(std::span<const std::byte> payload);

// Numbers, eight bytes each.
Bytes encode_counts(std::span<const std::uint64_t> counts);
std::vector<std::uint64_t> decode_counts(std::span<const std::byte> payload);  // throws PeerError

// A set of workers as bits.
Bytes encode_workers(const std::vector<Rank>& workers, int of);
std::vector<Rank> decode_workers(std::span<const std::byte> payload, int of);  // throws PeerError

}  // namespace cohort::server
