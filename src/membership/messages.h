// The frames by which a worker joins a server's job and leaves it, the same in every conversation
// between the two. docs/protocol.md tells when they are sent.
//
// What else the two say to each other has types of its own (ServerFrame, SwampFrame). A join says
// which conversation the worker has in mind, so that one that has reached a server of the other
// kind is refused with a sentence.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/types.h"
#include "membership/member.h"
#include "network/frame.h"

namespace cohort::membership {

enum class MemberFrame : network::FrameType {
  // Worker to server.
  kJoin = network::kFirstFreeType,  // incarnation: the one held, 0 for none; place: the one held
                                    // before it
  // was fenced; payload: JoinRequest. The rest is the conversation's
  kLeave,  // nothing more will come; detail: LeaveKind
  // Server to worker.
  kJoined = network::kFirstFreeType +
            32,  // incarnation: the worker's from here on; payload: lineage u64,
                 // then the conversation's
  kRefused,      // payload: why, for people; there is no use in trying again
  kFenced,       // this incarnation has been evicted or replaced: join anew
  kGoodbye,      // answer to kLeave, once nothing of the worker is needed any more
};
// Free for a conversation, from here up to 32 more.
inline constexpr network::FrameType kFirstWorkerType = network::kFirstFreeType + 2;
inline constexpr network::FrameType kFirstServerType = network::kFirstFreeType + 36;

enum class Conversation : std::uint32_t {
  kParameters = 1,  // with a parameter server
  kBestModel = 2,   // with a best-model server
};

// What a worker that joins without an incarnation has with it.
enum class JoinKind : std::uint32_t {
  kAnew,        // nothing
  kCheckpoint,  // where no worker is under way, the job goes back to worker 0's checkpoint
  kGoBack,      // worker 0, which may be there already: it goes back, whoever is under way
};

struct JoinRequest {
  Conversation conversation = Conversation::kParameters;
  JoinKind kind = JoinKind::kAnew;
  std::uint64_t lineage = 0;  // of the server's state, as the worker knows it; 0: not yet
  std::string job = {};       // its specification, a JSON document
};

// Reasons for people are cut to so many bytes.
inline constexpr std::size_t kMaxReasonBytes = 4096;

Bytes encode(const JoinRequest& request);
JoinRequest decode_join(std::span<const std::byte> payload);  // throws PeerError

// A joined frame's payload in its two parts.
Bytes encode_joined(std::uint64_t lineage, std::span<const std::byte> rest);
std::uint64_t joined_lineage(std::span<const std::byte> payload);            // throws PeerError
std::span<const std::byte> joined_rest(std::span<const std::byte> payload);  // likewise

LeaveKind decode_leave(Rank worker, const network::FrameHeader& header);  // throws PeerError

}  // namespace cohort::membership
