#include "server/parameter_server.h"

#include "core/error.h"
#include "core/random.h"
#include "server/server_state.h"

namespace cohort {

void ParameterServer::State::note_time(Deadline time) {
  now = time;
  if (started) return;
  started = time;
  last_snapshot = time;
  idle_since = time;
  if (!members) return;
  for (Member& member : members->all()) member.last_heard = time;
}

// The member whose current incarnation sent this, or nothing when it is to be ignored.
Member* ParameterServer::State::member_of(ConnectionId connection, const FrameHeader& header) {
  const auto found = connections.find(connection);
  if (found == connections.end()) {
    ++counters.fenced;
    return nullptr;
  }
  if (!found->second.joined) {
    throw PeerError("worker " + std::to_string(found->second.worker) +
                    " sent a frame before it had joined");
  }
  Member& member = members->at(found->second.worker);
  if (header.incarnation != member.incarnation) {
    ++counters.fenced;
    found->second.joined = false;
    FrameHeader fenced{.type = static_cast<FrameType>(ServerFrame::kFenced)};
    fenced.incarnation = header.incarnation;
    ports.send(connection, fenced, {}, Kept::kCopy);
    return nullptr;
  }
  return &member;
}

void ParameterServer::State::dispatch(ConnectionId connection, const FrameHeader& header,
                                      std::span<const std::byte> payload) {
  const auto type = static_cast<ServerFrame>(header.type);
  if (type == ServerFrame::kJoin) {
    on_join(connection, header, payload);
    return;
  }
  Member* member = member_of(connection, header);
  if (member == nullptr) return;
  switch (type) {
    case ServerFrame::kInitialize:
      return on_initialize(*member, header, payload);
    case ServerFrame::kInitialized:
      return on_initialized(*member, header, payload);
    case ServerFrame::kCommitted:
      return on_committed(*member, header, payload);
    case ServerFrame::kPush:
      return on_push(*member, header, payload);
    case ServerFrame::kPull:
      return on_pull(*member, header);
    case ServerFrame::kPersist:
      if (options.keeps_state) request_snapshot();
      return;
    case ServerFrame::kLeave:
      return on_leave(*member, header);
    default:
      throw PeerError("worker " + std::to_string(member->worker) +
                      " sent a frame of the unknown type " + std::to_string(header.type));
  }
}

void ParameterServer::State::send(const Member& member, ServerFrame type, FrameHeader header,
                                  std::span<const std::byte> payload, Kept kept) {
  if (!member.connection) return;
  header.type = static_cast<FrameType>(type);
  header.length = static_cast<std::uint32_t>(payload.size());
  header.incarnation = member.incarnation;
  ports.send(*member.connection, header, payload, kept);
}

void ParameterServer::State::forget(ConnectionId connection, const std::string& reason) {
  const auto found = connections.find(connection);
  if (members && members->has(found->second.worker)) {
    Member& member = members->at(found->second.worker);
    if (member.connection == connection) member.cut();
  }
  connections.erase(found);
  ports.close(connection, reason);
}

bool ParameterServer::State::finished_training() const {
  return spec->mode == ServerMode::kSync && spec->total_updates > 0 &&
         model->version() >= static_cast<std::uint64_t>(spec->total_updates);
}

ParameterServer::ParameterServer(const ServerOptions& options, ServerPorts& ports,
                                 const ServerSnapshot* snapshot)
    : state_(std::make_unique<State>(options, ports)) {
  const auto server = static_cast<std::uint64_t>(options.server);
  state_->lineage = derive_seed(options.seed, "lineage", {server}) | 1U;  // 0 means: none yet
  if (snapshot != nullptr) state_->restore(*snapshot);
}

ParameterServer::~ParameterServer() = default;

void ParameterServer::on_connected(ConnectionId connection, Rank worker, Deadline now) {
  state_->note_time(now);
  state_->idle_since.reset();
  state_->connections[connection] = {.worker = worker,
                                     .joined = false,
                                     .held_since = {},
                                     .held_before = 0,
                                     .last_heard = now,
                                     .restart = {}};
}

std::optional<std::span<std::byte>> ParameterServer::place_for(ConnectionId connection,
                                                               const FrameHeader& header) {
  State& state = *state_;
  const auto found = state.connections.find(connection);
  if (found == state.connections.end() || !found->second.joined) return {};
  Member& member = state.members->at(found->second.worker);
  if (header.incarnation != member.incarnation) return {};
  std::span<float> place;
  if (header.type == static_cast<FrameType>(ServerFrame::kPush)) {
    if (state.spec->wire != WireFormat::kFloat32) return {};
    if (!state.expects(member, header, header.length)) return {};
    state.free_memory(member.push);
    place = std::span(member.push.gradients)
                .subspan(static_cast<std::size_t>(header.place), header.length / sizeof(float));
  } else if (header.type == static_cast<FrameType>(ServerFrame::kInitialize)) {
    place = state.initial_place(member, header, header.length);
  }
  if (place.empty()) return {};
  return std::as_writable_bytes(place);
}

void ParameterServer::on_frame(ConnectionId connection, const FrameHeader& header,
                               std::span<const std::byte> payload, Deadline now) {
  on_heard(connection, now);
  state_->dispatch(connection, header, payload);
}

void ParameterServer::on_heard(ConnectionId connection, Deadline now) {
  state_->note_time(now);
  const auto found = state_->connections.find(connection);
  if (found == state_->connections.end()) return;
  found->second.last_heard = now;
  if (!state_->members || !state_->members->has(found->second.worker)) return;
  Member& member = state_->members->at(found->second.worker);
  // A worker that has connected again is there, though its join may still be on the way.
  if (!member.connection || member.connection == connection) member.last_heard = now;
}

void ParameterServer::on_lost(ConnectionId connection, Deadline now) {
  State& state = *state_;
  state.note_time(now);
  const auto found = state.connections.find(connection);
  if (found == state.connections.end()) return;
  const Rank worker = found->second.worker;
  state.connections.erase(found);
  if (state.connections.empty()) state.idle_since = now;
  if (!state.members || !state.members->has(worker)) return;
  Member& member = state.members->at(worker);
  if (member.connection != connection) return;
  member.cut();
  member.lost_at = now;
  member.pull.reset();
  if (!member.push.whole) member.push.clear();
  state.examine_held();
}

void ParameterServer::on_room(ConnectionId connection, Deadline now) {
  state_->note_time(now);
  const auto found = state_->connections.find(connection);
  if (found == state_->connections.end() || !state_->members) return;
  const Rank worker = found->second.worker;
  if (!state_->members->has(worker)) return;
  Member& member = state_->members->at(worker);
  if (member.connection == connection) state_->go_on_sending(member);
}

void ParameterServer::on_tick(Deadline now) {
  State& state = *state_;
  state.note_time(now);
  if (state.members) {
    state.evict_silent();
    state.examine_held();
    state.examine_restart();
    if (state.rounds_from && now >= *state.rounds_from) {
      state.rounds_from.reset();
      state.examine_rounds();
    }
    const bool due = now - state.last_snapshot >= state.options.snapshot_every;
    if (state.options.keeps_state && state.changed && due) state.snapshot_wanted = true;
    if (state.snapshot_wanted) state.request_snapshot();
    state.examine_pulls();
  }
  state.examine_end();
}

std::optional<std::string> ParameterServer::finished() const { return state_->finished; }
bool ParameterServer::ended_well() const {
  return state_->all_done() && state_->skipped == 0 && state_->counters.lost == 0;
}
const ServerCounters& ParameterServer::counters() const { return state_->counters; }
const JobSpec* ParameterServer::spec() const { return state_->spec.get(); }
std::string ParameterServer::text() const { return state_->text(); }

std::uint64_t ParameterServer::version() const {
  return state_->model ? state_->model->version() : 0;
}

std::vector<float> ParameterServer::parameters() const {
  return state_->model ? state_->model->preview() : std::vector<float>();
}

}  // namespace cohort
