#include "server/parameter_server.h"

#include "core/error.h"
#include "core/random.h"
#include "server/server_state.h"

namespace cohort::server {

void ParameterServer::State::dispatch(membership::ConnectionId connection,
                                      const network::FrameHeader& header,
                                      std::span<const std::byte> payload) {
  if (header.type == static_cast<network::FrameType>(membership::MemberFrame::kJoin)) {
    return on_join(connection, header, payload);
  }
  const membership::MemberRow* row = roster.sender(connection, header);
  if (row == nullptr) return;
  Member* member = &members->at(row->worker);
  if (header.type == static_cast<network::FrameType>(membership::MemberFrame::kLeave))
    return on_leave(*member, header);
  switch (static_cast<ServerFrame>(header.type)) {
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
    default:
      throw PeerError("worker " + std::to_string(member->worker) +
                      " sent a frame of the unknown type " + std::to_string(header.type));
  }
}

void ParameterServer::State::send(const Member& member, ServerFrame type,
                                  network::FrameHeader header, std::span<const std::byte> payload,
                                  network::Kept kept) {
  if (!member.connection) return;
  header.type = static_cast<network::FrameType>(type);
  header.length = static_cast<std::uint32_t>(payload.size());
  header.incarnation = member.incarnation;
  ports.send(*member.connection, header, payload, kept);
}

void ParameterServer::State::send_frame(membership::ConnectionId to,
                                        const network::FrameHeader& header,
                                        std::span<const std::byte> payload) {
  ports.send(to, header, payload, network::Kept::kCopy);
}

void ParameterServer::State::close_connection(membership::ConnectionId connection,
                                              const std::string& reason) {
  restarts.erase(connection);
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

void ParameterServer::on_connected(membership::ConnectionId connection, Rank worker, Deadline now) {
  state_->roster.on_connected(connection, worker, now);
}

std::optional<std::span<std::byte>> ParameterServer::place_for(membership::ConnectionId connection,
                                                               const network::FrameHeader& header) {
  State& state = *state_;
  const membership::MemberRow* row = state.roster.peek(connection, header);
  if (row == nullptr) return {};
  Member& member = state.members->at(row->worker);
  std::span<float> place;
  if (header.type == static_cast<network::FrameType>(ServerFrame::kPush)) {
    if (state.spec->wire != WireFormat::kFloat32) return {};
    if (!state.expects(member, header, header.length)) return {};
    state.free_memory(member.push);
    place = std::span(member.push.gradients)
                .subspan(static_cast<std::size_t>(header.place), header.length / sizeof(float));
  } else if (header.type == static_cast<network::FrameType>(ServerFrame::kInitialize)) {
    place = state.initial_place(member, header, header.length);
  }
  if (place.empty()) return {};
  return std::as_writable_bytes(place);
}

void ParameterServer::on_frame(membership::ConnectionId connection,
                               const network::FrameHeader& header,
                               std::span<const std::byte> payload, Deadline now) {
  on_heard(connection, now);
  state_->dispatch(connection, header, payload);
}

void ParameterServer::on_heard(membership::ConnectionId connection, Deadline now) {
  state_->roster.on_heard(connection, now);
}

void ParameterServer::on_lost(membership::ConnectionId connection, Deadline now) {
  state_->restarts.erase(connection);
  state_->roster.on_lost(connection, now);
}

void ParameterServer::on_room(membership::ConnectionId connection, Deadline now) {
  state_->roster.note_time(now);
  if (!state_->members) return;
  for (Member& member : state_->members->all()) {
    if (member.connection == connection) state_->go_on_sending(member);
  }
}

void ParameterServer::on_tick(Deadline now) {
  State& state = *state_;
  state.roster.on_tick(now);
  if (state.members) {
    state.evict_who_holds_up();
    state.examine_restart();
    if (state.rounds_from && now >= *state.rounds_from) {
      state.rounds_from.reset();
      state.examine_rounds();
    }
    const bool due = now - state.snapshots.made_at() >= state.options.snapshot_every;
    if (state.options.keeps_state && state.snapshots.changed() && due) state.snapshots.want();
    if (state.snapshots.wanted()) state.request_snapshot();
    state.examine_pulls();
  }
  state.examine_end();
}

std::optional<std::string> ParameterServer::finished() const { return state_->roster.finished(); }

bool ParameterServer::ended_well() const {
  return state_->roster.all_done() && state_->skipped == 0 && state_->counters.lost == 0;
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

}  // namespace cohort::server
