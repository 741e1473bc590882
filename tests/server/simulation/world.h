// One schedule: a parameter server, its workers, the network and the disk between them, and what
// goes wrong, all decided by one seed.
#pragma once

#include <array>
#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/random.h"
#include "simulation/events.h"
#include "simulation/oracle.h"
#include "simulation/server_process.h"
#include "simulation/swarm.h"
#include "simulation/trace.h"
#include "simulation/virtual_time.h"
#include "simulation/wire.h"
#include "simulation/worker_process.h"

namespace cohort::server::simulation {

struct Outcome {
  std::optional<Breach> breach = {};
  std::string text = {};  // of the breach
  std::uint64_t hash = 0;
  std::uint64_t events = 0;
  std::uint64_t applied = 0;  // pushes that are in the model in the end
  std::uint64_t crashes = 0;
  std::uint64_t server_crashes = 0;
  std::uint64_t pauses = 0;
  std::uint64_t breaks = 0;
  std::uint64_t restarts = 0;
  std::uint64_t gone_back = 0;  // to worker 0's checkpoint
  std::uint64_t evictions = 0;
  std::uint64_t counted = 0;  // by the server as lost
  std::uint64_t excused = 0;  // acknowledged, and lost with the server and the worker that held it
};

class World {
 public:
  World(Seed seed, std::FILE* trace);

  Outcome run();

  // For the processes.
  cohort::simulation::Time now() const { return now_; }
  Seed seed() const { return seed_; }
  const Swarm& swarm() const { return swarm_; }
  const JobSpec& spec() const { return spec_; }
  Oracle& oracle() { return oracle_; }
  bool chance(double probability);
  std::int64_t draw(std::uint64_t below) { return static_cast<std::int64_t>(random_.below(below)); }
  cohort::simulation::Time compute_time(Rank rank);
  void wake_me(WorkerProcess& process, cohort::simulation::Time in, std::uint64_t generation);
  int pushes_of(Rank rank) const { return ranks_[static_cast<std::size_t>(rank)].pushes; }
  int next_push(Rank rank);  // -1 when there is no number left
  // Now and then, or for sure.
  void save(std::uint64_t version, std::span<const float> values, bool always);
  void worker_done(WorkerProcess& process);
  void worker_refused(WorkerProcess& process, const std::string& why);
  void worker_sends(WorkerProcess& process, const network::FrameHeader& header,
                    std::span<const std::byte> payload);

  void server_sends(membership::ConnectionId to, const network::FrameHeader& header,
                    std::span<const std::byte> payload, network::Kept kept);
  void server_closes(membership::ConnectionId connection, const std::string& reason);
  void server_logs(const std::string& line);
  bool has_room(membership::ConnectionId to);
  void model_changes(std::span<const std::byte> memory);
  void server_updates();
  void snapshot_begun(int boot, std::uint64_t id);
  // Every call of the machine goes through here: afterwards its promises are checked.
  void on_server(const std::function<void()>& call);

 private:
  struct RankState {
    int process = -1;  // the latest
    int pushes = 0;
    bool done = false;  // it has left
    bool gone = false;  // nobody starts another process
  };

  void dispatch(const Event& event);
  void tick();
  void finish_server(const std::string& why);
  bool over() const { return server_done_; }
  [[noreturn]] void stuck();

  // network.cpp
  void connect(WorkerProcess& process);
  void send(Wire& wire, End to, Parcel parcel);
  void deliver(Wire& wire, End to);
  void take_front(Wire& wire, End to);
  void hand_over(Wire& wire, End to, Parcel& parcel);
  void end_lost(Wire& wire, End end, const char* why);
  void drop_tail(Channel& channel);
  void give_room(Wire& wire);
  void server_hears(Wire& from);
  void end_channel(Wire& wire, End to);
  void break_wire(Wire& wire);
  void heartbeat(Wire& wire);
  cohort::simulation::Time blocked_until(const Wire& wire, End to) const;
  bool stopped(const Wire& wire, End end) const;
  cohort::simulation::Time delay();
  Wire& wire(std::uint64_t id) { return wires_[static_cast<std::size_t>(id - 1)]; }

  // faults.cpp
  void fault(Fault kind);
  void plan(Fault kind);
  void calm();
  void spawn(Rank rank);
  void crash_worker(WorkerProcess& process);
  void pause_worker(WorkerProcess& process, cohort::simulation::Time length);
  void wake_worker(WorkerProcess& process);
  void crash_server();
  void restart_job();
  void resume_first_alone();
  void take_checkpoint();
  void end_job();
  void wake_server();
  WorkerProcess* some_worker();                                    // one that lives and is awake
  cohort::simulation::Time around(cohort::simulation::Time mean);  // exponential

  void note(const Event& event);
  bool tracing() const { return trace_.wanted(); }
  void say(const std::string& text) const { trace_.line(now_, text); }

  Seed seed_;
  Swarm swarm_;
  JobSpec spec_;
  RandomStream random_;
  cohort::simulation::Trace trace_;
  Events queue_;
  Oracle oracle_;
  ServerProcess server_;
  std::deque<Wire> wires_;
  std::vector<std::uint32_t> live_wires_;
  std::vector<std::unique_ptr<WorkerProcess>> processes_;
  std::array<RankState, kMaxWorkers> ranks_ = {};
  cohort::simulation::Time now_ = 0;
  cohort::simulation::Time until_ = 0;
  std::shared_ptr<const Checkpoint> saved_ = {};      // null: nothing yet
  std::shared_ptr<const Checkpoint> restarted_ = {};  // what new processes come with
  std::uint64_t beginnings_ = 0;                      // of the job, when it was restarted
  bool calm_ = false;
  bool server_done_ = false;
  Outcome outcome_;
};

}  // namespace cohort::server::simulation
