#include "simulation/frame_text.h"

#include <sstream>

#include "server/messages.h"

namespace cohort::server::simulation {
namespace {

const char* name_of(network::FrameType type) {
  switch (static_cast<membership::MemberFrame>(type)) {
    case membership::MemberFrame::kJoin:
      return "join";
    case membership::MemberFrame::kLeave:
      return "leave";
    case membership::MemberFrame::kJoined:
      return "joined";
    case membership::MemberFrame::kRefused:
      return "refused";
    case membership::MemberFrame::kFenced:
      return "fenced";
    case membership::MemberFrame::kGoodbye:
      return "goodbye";
  }
  switch (static_cast<ServerFrame>(type)) {
    case ServerFrame::kInitialize:
      return "initialize";
    case ServerFrame::kInitialized:
      return "initialized";
    case ServerFrame::kCommitted:
      return "committed";
    case ServerFrame::kPush:
      return "push";
    case ServerFrame::kPull:
      return "pull";
    case ServerFrame::kPersist:
      return "persist";
    case ServerFrame::kAck:
      return "ack";
    case ServerFrame::kDropped:
      return "dropped";
    case ServerFrame::kRejected:
      return "rejected";
    case ServerFrame::kDurable:
      return "durable";
    case ServerFrame::kValues:
      return "values";
    case ServerFrame::kFinished:
      return "finished";
    case ServerFrame::kProgress:
      return "progress";
    case ServerFrame::kEarlyValues:
      return "early-values";
  }
  return "?";
}

}  // namespace

std::string frame_text(const network::FrameHeader& header, std::span<const std::byte> payload,
                       int workers) {
  std::ostringstream out;
  out << name_of(header.type) << " incarnation=" << header.incarnation
      << " sequence=" << header.sequence << " place=" << header.place << " detail=" << header.detail
      << " bytes=" << header.length;
  const auto type = static_cast<ServerFrame>(header.type);
  const bool has_workers = type == ServerFrame::kCommitted || type == ServerFrame::kAck;
  if (has_workers && !payload.empty()) {
    out << " workers=";
    for (const Rank rank : decode_workers(payload, workers)) out << rank;
  }
  if (header.type == static_cast<network::FrameType>(membership::MemberFrame::kJoined)) {
    const JoinedBody body = decode_joined(membership::joined_rest(payload));
    out << " [lineage " << membership::joined_lineage(payload) % 10000 << ", applied "
        << body.applied << ", durable " << body.durable << ", version " << body.version
        << ", progress " << body.progress << (body.initialized ? ", initialized" : "") << "]";
  }
  return out.str();
}

}  // namespace cohort::server::simulation
