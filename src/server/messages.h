// The frames between workers and parameter servers. docs/protocol.md tells the whole conversation.
//
// `place` counts elements of the server's arena. Floats travel as the job's WireFormat says.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/types.h"
#include "network/frame.h"

namespace cohort {

enum class ServerFrame : FrameType {
  // Worker to server.
  kJoin =
      kFirstFreeType,  // incarnation: the one held, 0 for none; sequence: pushes answered, which
                       // it can repeat; place: the one it held before it was fenced; detail: low
                       // 32 bits of the version pulled last; payload: lineage u64 (0: none
                       // yet), JoinKind u64, JobSpec as JSON
  kInitialize,   // worker 0; detail: 0 parameters, 1... optimizer slots; place; payload: float32
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
  kLeave,    // nothing more will be pushed; detail: LeaveKind
  // Server to worker.
  kJoined = kFirstFreeType + 32,  // payload: JoinedBody
  kRefused,                       // payload: why, for people; there is no use in trying again
  kFenced,    // this incarnation has been evicted or replaced: join anew. kJoined tells what became
              // of a push that was not answered
  kAck,       // sequence: this push and all before are in the model; place: those up to here are
              // also on disk; detail: staleness of the push; payload: kSync: its round's workers
  kDropped,   // sequence: this push came too late for its round and is in no model
  kRejected,  // sequence: this push holds numbers that are not finite, and is in no model; payload:
              // why
  kDurable,   // place: pushes up to here are on disk
  kValues,  // sequence: the pull's id; place; detail: low 32 bits of the version; payload: elements
  kFinished,     // kSync: the last update has been made; pull and leave
  kGoodbye,      // answer to kLeave, once all that was pushed is on disk where snapshots are made
  kEarlyValues,  // as kValues, of the model as it will be if the push that is still coming counts:
                 // they stand once kValues go on where they ended, and mean nothing when those
                 // begin at 0
  kProgress,     // before the kValues of a pull that is exact or waits for the others, and of their
                 // version; sequence: that version; place: updates that it counts and that were
                 // lost; detail: the first worker that is not lost; payload: encode_counts() of
                 // the pushes of each worker in the model
};

// What a worker that joins without an incarnation has with it.
enum class JoinKind : std::uint64_t {
  kAnew,        // nothing
  kCheckpoint,  // where no worker is under way, the job goes back to worker 0's checkpoint
  kGoBack,      // worker 0, which may be there already: it goes back, whoever is under way
};

inline constexpr std::size_t kJoinNumbers = 2 * sizeof(std::uint64_t);  // before the JobSpec

// How a worker's part in the job ended.
enum class LeaveKind : std::uint32_t {
  kDone,
  kInterrupted,  // by the user: it may go on from its checkpoint
  kFailed,
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
  std::uint64_t incarnation = 0;
  std::uint64_t lineage = 0;   // of the state; another after a restart without its state
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

// The JobSpec of a kJoin.
std::string job_text(std::span<const std::byte> join);

// Numbers, eight bytes each.
Bytes encode_counts(std::span<const std::uint64_t> counts);
std::vector<std::uint64_t> decode_counts(std::span<const std::byte> payload);  // throws PeerError

// A set of workers as bits.
Bytes encode_workers(const std::vector<Rank>& workers, int of);
std::vector<Rank> decode_workers(std::span<const std::byte> payload, int of);  // throws PeerError

}  // namespace cohort
