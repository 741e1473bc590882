#include "simulation/server_process.h"

#include "core/random.h"
#include "simulation/world.h"

namespace cohort::server::simulation {

void ServerProcess::start() {
  ++boot_;
  const Swarm& swarm = world_.swarm();
  ServerOptions options;
  options.keeps_state = swarm.keeps_state;
  options.evict_after = std::chrono::nanoseconds(swarm.evict_after);
  options.evict_unconnected = std::chrono::nanoseconds(swarm.evict_unconnected);
  options.snapshot_every = std::chrono::nanoseconds(swarm.snapshot_every);
  options.idle_exit = std::chrono::seconds(20);
  options.speculation_stretch = swarm.speculation_stretch;
  options.seed = derive_seed(world_.seed(), "boot", {static_cast<std::uint64_t>(boot_)});
  options.log = [this](const std::string& line) { world_.server_logs(line); };
  const ServerSnapshot* snapshot = durable_ ? &*durable_ : nullptr;
  machine_ = std::make_unique<ParameterServer>(options, *this, snapshot);
  world_.oracle().server_started(snapshot, machine_->version(), world_.now());
}

void ServerProcess::crash() {
  machine_.reset();
  // Of what was being written, files that are whole count, whether their server knew or not.
  for (auto it = writing_.begin(); it != writing_.end();) {
    const std::uint64_t id = (it++)->first;
    if (world_.chance(world_.swarm().snapshot_survives)) keep(id);
  }
  writing_.clear();
}

void ServerProcess::keep(std::uint64_t id) {
  const auto found = writing_.find(id);
  if (found == writing_.end()) return;
  const bool newest = !durable_ || durable_->id < id;
  if (newest) durable_ = std::move(found->second);
  writing_.erase(found);
  if (newest) world_.oracle().snapshot_kept(id);
}

void ServerProcess::persisted(int boot, std::uint64_t id) {
  if (boot != boot_ || !up() || writing_.count(id) == 0) return;
  if (world_.chance(world_.swarm().persist_fails)) {
    writing_.erase(id);
    world_.on_server([&] {
      machine_->on_persist_failed(id, "disk full", cohort::simulation::moment(world_.now()));
    });
  } else {
    keep(id);
    world_.on_server([&] { machine_->on_persisted(id, cohort::simulation::moment(world_.now())); });
  }
}

void ServerProcess::send(membership::ConnectionId to, const network::FrameHeader& header,
                         std::span<const std::byte> payload, network::Kept kept) {
  world_.server_sends(to, header, payload, kept);
}

std::size_t ServerProcess::piece_bytes(membership::ConnectionId) const {
  return world_.swarm().piece * sizeof(float);
}

bool ServerProcess::has_room(membership::ConnectionId to) { return world_.has_room(to); }

void ServerProcess::model_changes(std::span<const std::byte> memory) {
  world_.model_changes(memory);
}

void ServerProcess::version_changes() { world_.server_updates(); }

void ServerProcess::close(membership::ConnectionId connection, const std::string& reason) {
  world_.server_closes(connection, reason);
}

void ServerProcess::persist(ServerSnapshot snapshot) {
  world_.oracle().model_seen(machine_->version(), machine_->parameters(), world_.now());
  world_.oracle().snapshot_made(snapshot);
  const std::uint64_t id = snapshot.id;
  writing_[id] = std::move(snapshot);
  world_.snapshot_begun(boot_, id);
}

}  // namespace cohort::server::simulation
