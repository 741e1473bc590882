#include "membership/membership_client.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace cohort::membership {

MembershipClient::MembershipClient(Conversation conversation, std::string server, std::string job,
                                   Send send)
    : conversation_(conversation),
      server_(std::move(server)),
      job_(std::move(job)),
      send_(std::move(send)) {}

void MembershipClient::broken(const std::string& what) const {
  throw PeerError(server_ + " " + what);
}

void MembershipClient::send(MemberFrame type, network::FrameHeader header,
                            std::span<const std::byte> payload) {
  header.type = static_cast<network::FrameType>(type);
  header.length = static_cast<std::uint32_t>(payload.size());
  header.incarnation = incarnation_;
  send_(header, payload);
}

void MembershipClient::on_connected() {
  connected_ = true;
  joined_ = leave_sent_ = false;
}

void MembershipClient::on_lost() { connected_ = joined_ = leave_sent_ = false; }

void MembershipClient::ask(JoinKind kind, network::FrameHeader header) {
  if (!connected_ || refused_ || left_) return;
  header.place = before_;
  send(MemberFrame::kJoin, header,
       encode(JoinRequest{
           .conversation = conversation_, .kind = kind, .lineage = lineage_, .job = job_}));
}

void MembershipClient::start_over() {
  joined_ = false;
  incarnation_ = before_ = lineage_ = 0;
}

void MembershipClient::on_joined(const network::FrameHeader& header,
                                 std::span<const std::byte> payload) {
  const std::uint64_t lineage = joined_lineage(payload);
  if (joined_) broken("answered a join twice");
  const bool other = incarnation_ != 0 && header.incarnation != incarnation_;
  if (header.incarnation == 0 || other) broken("changed this worker's incarnation");
  incarnation_ = header.incarnation;
  before_ = 0;
  lineage_ = lineage;
  joined_ = true;
}

MembershipClient::Event MembershipClient::on_frame(const network::FrameHeader& header,
                                                   std::span<const std::byte> payload) {
  const auto type = static_cast<MemberFrame>(header.type);
  if (type == MemberFrame::kRefused) {
    refused_ = std::string(reinterpret_cast<const char*>(payload.data()),
                           std::min(payload.size(), kMaxReasonBytes));
    return Event::kNothing;
  }
  if (type == MemberFrame::kJoined) return on_joined(header, payload), Event::kJoined;
  if (header.incarnation != incarnation_) return Event::kNothing;
  if (type == MemberFrame::kFenced) {
    ++rejoined_;
    before_ = std::exchange(incarnation_, 0);
    joined_ = leave_sent_ = false;
    return Event::kFenced;
  }
  if (!joined_) broken("spoke before it had answered the join");
  if (type != MemberFrame::kGoodbye) return Event::kOther;
  left_ = left_ || leave_sent_;
  return Event::kNothing;
}

void MembershipClient::send_leave() {
  if (!leaving_ || leave_sent_) return;
  leave_sent_ = true;
  network::FrameHeader header;
  header.detail = static_cast<std::uint32_t>(*leaving_);
  send(MemberFrame::kLeave, header);
}

}  // namespace cohort::membership
