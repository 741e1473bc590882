#include "swamp/best_model_server.h"

#include "core/error.h"
#include "core/random.h"
#include "swamp/server_state.h"

namespace cohort {

void SwampMember::renew(std::uint64_t next_incarnation) {
  incarnation = next_incarnation;
  newest = 0;
  held.clear();
  verdicts.clear();
  own_version = 0;
  incoming = {};
  pull.reset();
  ended = leaving = false;
}

void BestModelServer::State::note_time(Deadline time) {
  now = time;
  if (started) return;
  started = time;
  idle_since = time;
  for (Member& member : members) member.last_heard = time;
}

SwampMember* BestModelServer::State::find(Rank worker) {
  const auto place = static_cast<std::size_t>(worker);
  return worker >= 0 && place < members.size() ? &members[place] : nullptr;
}

// The member whose current incarnation sent this, or nothing when it is to be ignored.
SwampMember* BestModelServer::State::member_of(SwampConnection connection,
                                               const FrameHeader& header) {
  const auto found = connections.find(connection);
  if (found == connections.end()) {
    ++counters.fenced;
    return nullptr;
  }
  if (!found->second.joined) {
    throw PeerError("worker " + std::to_string(found->second.worker) +
                    " sent a frame before it had joined");
  }
  Member& member = members[static_cast<std::size_t>(found->second.worker)];
  if (header.incarnation != member.incarnation) {
    found->second.joined = false;
    fence(connection, header.incarnation);
    return nullptr;
  }
  return &member;
}

void BestModelServer::State::dispatch(SwampConnection connection, const FrameHeader& header,
                                      std::span<const std::byte> payload) {
  const auto type = static_cast<SwampFrame>(header.type);
  if (type == SwampFrame::kJoin) return on_join(connection, header, payload);
  Member* member = member_of(connection, header);
  if (member == nullptr) return;
  switch (type) {
    case SwampFrame::kInitial:
      return on_initial(*member, header, payload);
    case SwampFrame::kOffer:
      return on_offer(*member, header, payload);
    case SwampFrame::kOfferValues:
      return on_offer_values(*member, header, payload);
    case SwampFrame::kPull:
      return on_pull(*member, header);
    case SwampFrame::kLeave:
      return on_leave(*member);
    default:
      throw PeerError("worker " + std::to_string(member->worker) +
                      " sent a frame of the unknown type " + std::to_string(header.type));
  }
}

void BestModelServer::State::send(const Member& member, SwampFrame type, FrameHeader header,
                                  std::span<const std::byte> payload, const ModelValues& owner) {
  if (!member.connection) return;
  header.type = static_cast<FrameType>(type);
  header.length = static_cast<std::uint32_t>(payload.size());
  header.incarnation = member.incarnation;
  ports.send(*member.connection, header, payload, owner);
}

void BestModelServer::State::forget(SwampConnection connection, const std::string& reason) {
  const auto found = connections.find(connection);
  if (Member* member = find(found->second.worker);
      member != nullptr && member->connection == connection) {
    member->connection.reset();
    member->incoming = {};
    member->pull.reset();
    member->lost_at = now;
  }
  connections.erase(found);
  if (connections.empty()) idle_since = now;
  ports.close(connection, reason);
}

BestModelServer::BestModelServer(const SwampServerSettings& settings, SwampServerPorts& ports,
                                 const SwampSnapshot* snapshot)
    : state_(std::make_unique<State>(settings, ports)) {
  state_->lineage = derive_seed(settings.seed, "swamp lineage") | 1U;  // 0 means: none yet
  state_->job_is_kept = !settings.keeps_state;
  if (snapshot != nullptr) state_->restore(*snapshot);
}

BestModelServer::~BestModelServer() = default;

void BestModelServer::on_connected(SwampConnection connection, Rank worker, Deadline now) {
  state_->note_time(now);
  state_->idle_since.reset();
  state_->connections[connection] = {
      .worker = worker, .joined = false, .held_since = {}, .last_heard = now};
}

std::optional<std::span<std::byte>> BestModelServer::place_for(SwampConnection connection,
                                                               const FrameHeader& header) {
  State& state = *state_;
  const auto found = state.connections.find(connection);
  if (found == state.connections.end() || !found->second.joined) return {};
  SwampMember& member = state.members[static_cast<std::size_t>(found->second.worker)];
  if (header.incarnation != member.incarnation) return {};
  std::span<float> place;
  if (header.type == static_cast<FrameType>(SwampFrame::kOfferValues)) {
    if (!state.follows(member, header, header.length) || !member.incoming.values) return {};
    place = std::span(*member.incoming.values)
                .subspan(static_cast<std::size_t>(header.place), header.length / sizeof(float));
  } else if (header.type == static_cast<FrameType>(SwampFrame::kInitial)) {
    place = state.initial_place(member, header, header.length);
  }
  if (place.empty()) return {};
  return std::as_writable_bytes(place);
}

void BestModelServer::on_frame(SwampConnection connection, const FrameHeader& header,
                               std::span<const std::byte> payload, Deadline now) {
  on_heard(connection, now);
  state_->dispatch(connection, header, payload);
}

void BestModelServer::on_heard(SwampConnection connection, Deadline now) {
  state_->note_time(now);
  const auto found = state_->connections.find(connection);
  if (found == state_->connections.end()) return;
  found->second.last_heard = now;
  SwampMember* member = state_->find(found->second.worker);
  // A worker that has connected again is there, though its join may still be on the way.
  if (member != nullptr && (!member->connection || member->connection == connection)) {
    member->last_heard = now;
  }
}

void BestModelServer::on_lost(SwampConnection connection, Deadline now) {
  State& state = *state_;
  state.note_time(now);
  const auto found = state.connections.find(connection);
  if (found == state.connections.end()) return;
  SwampMember* member = state.find(found->second.worker);
  state.connections.erase(found);
  if (state.connections.empty()) state.idle_since = now;
  if (member == nullptr || member->connection != connection) return;
  member->connection.reset();
  member->lost_at = now;
  member->incoming = {};
  member->pull.reset();
  state.examine_held();
}

void BestModelServer::on_tick(Deadline now) {
  State& state = *state_;
  state.note_time(now);
  if (state.spec) {
    state.evict_silent();
    state.examine_held();
    if (state.snapshot_wanted) state.request_snapshot();
    state.examine_next();
    state.finish_leaves();
    state.examine_pulls();
  }
  state.examine_end();
}

void BestModelServer::give_up(const std::string& why, Deadline now) {
  State& state = *state_;
  state.note_time(now);
  state.given_up = why;
  while (!state.connections.empty()) state.refuse(state.connections.begin()->first, why);
  state.finished = why;
}

std::optional<std::string> BestModelServer::finished() const { return state_->finished; }
const SwampSpec* BestModelServer::spec() const { return state_->spec.get(); }
std::string BestModelServer::text() const { return state_->text(); }

SwampCounters BestModelServer::counters() const {
  SwampCounters counters = state_->counters;
  if (state_->policy) counters.not_replayed = state_->policy->standing().not_replayed;
  return counters;
}

const BestRecord& BestModelServer::best() const {
  static const BestRecord none;
  return state_->policy ? state_->policy->best() : none;
}

}  // namespace cohort
