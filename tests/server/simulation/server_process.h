// The server's process: the server under test, and the disk that outlives it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "server/parameter_server.h"
#include "simulation/virtual_time.h"

namespace cohort::server::simulation {

class World;

class ServerProcess final : public ServerPorts {
 public:
  explicit ServerProcess(World& world) : world_(world) {}

  void start();
  void crash();
  bool up() const { return machine_ != nullptr; }
  ParameterServer& machine() { return *machine_; }
  int boot() const { return boot_; }
  bool has_snapshot() const { return durable_.has_value(); }

  // A write that `boot` asked for has ended.
  void persisted(int boot, std::uint64_t id);

  void send(membership::ConnectionId to, const network::FrameHeader& header,
            std::span<const std::byte> payload, network::Kept kept) override;
  std::size_t piece_bytes(membership::ConnectionId) const override;
  bool has_room(membership::ConnectionId to) override;
  void model_changes(std::span<const std::byte> memory) override;
  void version_changes() override;
  void close(membership::ConnectionId connection, const std::string& reason) override;
  void persist(ServerSnapshot snapshot) override;

  bool paused = false;

 private:
  void keep(std::uint64_t id);

  World& world_;
  std::unique_ptr<ParameterServer> machine_;
  int boot_ = -1;
  std::map<std::uint64_t, ServerSnapshot> writing_;
  std::optional<ServerSnapshot> durable_;
};

}  // namespace cohort::server::simulation
