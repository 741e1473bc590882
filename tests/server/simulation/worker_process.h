// A worker's process: the client under test, and a training loop around it as the engine runs one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "server/parameter_server.h"
#include "server/shard_client.h"
#include "simulation/marks.h"
#include "simulation/swarm.h"
#include "simulation/virtual_time.h"

namespace cohort::server::simulation {

class World;

class WorkerProcess final : public ClientPorts {
 public:
  enum class Phase { kJoining, kPulling, kComputing, kPushing, kLeaving, kDone };

  // `checkpoint`: of the run that it goes on with; null: it begins.
  WorkerProcess(World& world, int index, Rank rank, std::shared_ptr<const Checkpoint> checkpoint);

  int index() const { return index_; }
  Rank rank() const { return rank_; }
  Phase phase() const { return phase_; }
  ShardClient& client() { return client_; }
  std::uint64_t generation() const { return generation_; }

  void connected();
  void lost();
  std::optional<std::span<std::byte>> place_for(const network::FrameHeader& header);
  void frame(const network::FrameHeader& header, std::span<const std::byte> payload, int boot);
  void interrupt() { interrupted_ = true; }  // it leaves after the step that it is in
  void timer();                              // the one asked for with World::wake_me

  void send(const network::FrameHeader& header, std::span<const std::byte> payload,
            network::Kept kept) override;

  std::uint32_t connection = 0;            // 0: none
  membership::ConnectionId joined_by = 0;  // the connection by which the server let it in last
  bool alive = true;
  bool paused = false;
  bool timer_missed = false;  // while it was stopped
  cohort::simulation::Time clogged_until[2] = {0, 0};

 private:
  void drive();
  void pull(std::uint32_t which = 0);
  void ask(std::uint32_t which);
  void pull_answered();
  void begin_push();
  void continue_push();
  bool enough() const;

  World& world_;
  int index_;
  Rank rank_;
  std::shared_ptr<const Checkpoint> checkpoint_;
  ShardClient client_;
  Phase phase_ = Phase::kJoining;
  std::uint64_t generation_ = 0;
  std::vector<float> gradients_;
  std::vector<float> values_;
  Checkpoint initial_;
  int push_ = -1;  // the number of the one under way
  std::int64_t sent_ = 0;
  bool asked_ = false;   // for the values after that push
  bool begins_ = true;   // has not been told yet where it stands
  bool looked_ = false;  // the last look has been asked for
  bool interrupted_ = false;
  int steps_ = 0;  // done, by this worker's earlier processes too
  int values_boot_ = 0;
};

}  // namespace cohort::server::simulation
