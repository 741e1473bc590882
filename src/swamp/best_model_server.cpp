#include "swamp/best_model_server.h"

#include "core/error.h"
#include "core/random.h"
#include "swamp/server_state.h"

namespace cohort::swamp {

void SwampMember::renew() {
  newest = 0;
  held.clear();
  verdicts.clear();
  own_version = 0;
  disconnect();
  ended = false;
}

void BestModelServer::State::dispatch(membership::ConnectionId connection,
                                      const network::FrameHeader& header,
                                      std::span<const std::byte> payload) {
  if (header.type == static_cast<network::FrameType>(membership::MemberFrame::kJoin)) {
    return on_join(connection, header, payload);
  }
  const membership::MemberRow* row = roster.sender(connection, header);
  if (row == nullptr) return;
  Member* member = &at(*row);
  if (header.type == static_cast<network::FrameType>(membership::MemberFrame::kLeave))
    return on_leave(*member, header);
  switch (static_cast<SwampFrame>(header.type)) {
    case SwampFrame::kInitial:
      return on_initial(*member, header, payload);
    case SwampFrame::kOffer:
      return on_offer(*member, header, payload);
    case SwampFrame::kOfferValues:
      return on_offer_values(*member, header, payload);
    case SwampFrame::kPull:
      return on_pull(*member, header);
    default:
      throw PeerError("worker " + std::to_string(member->worker) +
                      " sent a frame of the unknown type " + std::to_string(header.type));
  }
}

void BestModelServer::State::send(const Member& member, SwampFrame type,
                                  network::FrameHeader header, std::span<const std::byte> payload,
                                  const ModelValues& owner) {
  if (!member.connection) return;
  header.type = static_cast<network::FrameType>(type);
  header.length = static_cast<std::uint32_t>(payload.size());
  header.incarnation = member.incarnation;
  ports.send(*member.connection, header, payload, owner);
}

BestModelServer::BestModelServer(const SwampServerSettings& settings, SwampServerPorts& ports,
                                 const SwampSnapshot* snapshot)
    : state_(std::make_unique<State>(settings, ports)) {
  state_->lineage = derive_seed(settings.seed, "swamp lineage") | 1U;  // 0 means: none yet
  state_->job_is_kept = !settings.keeps_state;
  if (snapshot != nullptr) state_->restore(*snapshot);
}

BestModelServer::~BestModelServer() = default;

void BestModelServer::on_connected(membership::ConnectionId connection, Rank worker, Deadline now) {
  state_->roster.on_connected(connection, worker, now);
}

std::optional<std::span<std::byte>> BestModelServer::place_for(membership::ConnectionId connection,
                                                               const network::FrameHeader& header) {
  State& state = *state_;
  const membership::MemberRow* row = state.roster.peek(connection, header);
  if (row == nullptr) return {};
  SwampMember& member = state.at(*row);
  std::span<float> place;
  if (header.type == static_cast<network::FrameType>(SwampFrame::kOfferValues)) {
    if (!state.follows(member, header, header.length) || !member.incoming.values) return {};
    place = std::span(*member.incoming.values)
                .subspan(static_cast<std::size_t>(header.place), header.length / sizeof(float));
  } else if (header.type == static_cast<network::FrameType>(SwampFrame::kInitial)) {
    place = state.initial_place(member, header, header.length);
  }
  if (place.empty()) return {};
  return std::as_writable_bytes(place);
}

void BestModelServer::on_frame(membership::ConnectionId connection,
                               const network::FrameHeader& header,
                               std::span<const std::byte> payload, Deadline now) {
  on_heard(connection, now);
  state_->dispatch(connection, header, payload);
}

void BestModelServer::on_heard(membership::ConnectionId connection, Deadline now) {
  state_->roster.on_heard(connection, now);
}

void BestModelServer::on_lost(membership::ConnectionId connection, Deadline now) {
  state_->roster.on_lost(connection, now);
}

void BestModelServer::on_tick(Deadline now) {
  State& state = *state_;
  state.roster.on_tick(now);
  if (state.spec) {
    if (state.snapshots.wanted()) state.request_snapshot();
    state.examine_next();
    state.finish_leaves();
    state.examine_pulls();
  }
  state.examine_end();
}

void BestModelServer::give_up(const std::string& why, Deadline now) {
  State& state = *state_;
  state.roster.note_time(now);
  state.given_up = why;
  while (!state.roster.connections().empty()) {
    state.roster.refuse(state.roster.connections().begin()->first, why);
  }
  state.roster.end(why, false);
}

std::optional<std::string> BestModelServer::finished() const { return state_->roster.finished(); }

const SwampSpec* BestModelServer::spec() const { return state_->spec.get(); }
std::string BestModelServer::text() const { return state_->roster.text(); }

SwampCounters BestModelServer::counters() const {
  SwampCounters counters = state_->counters;
  if (state_->policy) counters.not_replayed = state_->policy->standing().not_replayed;
  return counters;
}

const BestRecord& BestModelServer::best() const {
  static const BestRecord none;
  return state_->policy ? state_->policy->best() : none;
}

}  // namespace cohort::swamp
