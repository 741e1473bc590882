// A best-model server, its workers and what goes wrong between them, in one thread and in virtual
// time. A seed decides everything.
//
// The network delivers late, in part, or breaks, for one side earlier than for the other; workers
// crash and are started again, also while the old process still lives; the examiner takes its time,
// or fails; the disk is slow or full; the server crashes, with or without the snapshot under way.
// At the end faults stop, and everybody has to finish.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/random.h"
#include "simulation/oracle.h"
#include "swamp/best_model_client.h"
#include "swamp/best_model_server.h"

namespace cohort::swamp::simulation {

struct Outcome {
  std::uint64_t events = 0;
  std::uint64_t offers = 0;
  std::uint64_t accepted = 0;
  std::uint64_t worker_crashes = 0;
  std::uint64_t server_crashes = 0;
  std::uint64_t breaks = 0;
  std::uint64_t evictions = 0;
  std::uint64_t fenced = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t digest = 0;  // of all that was sent
};

class World final : private SwampServerPorts {
 public:
  World(Seed seed, bool trace);
  ~World() override;

  // Throws Violation.
  Outcome run();

 private:
  struct Parcel {
    network::FrameHeader header;
    Bytes payload;
  };

  struct Process;

  // A connection has two ends, which may disagree for a while about whether it exists.
  struct Wire {
    Process* process = nullptr;  // null: its end is gone
    Rank worker = 0;
    bool server_end = true;
    std::optional<Deadline> silent_since = {};  // nothing passes, and nobody is told
    std::optional<PullKind> pull = {};          // the last that reached the server
    std::deque<Parcel> to_server;
    std::deque<Parcel> to_worker;
  };

  // One life of a worker.
  struct Process final : SwampClientPorts {
    void send(const network::FrameHeader& header, std::span<const std::byte> payload,
              const ModelValues& owner) override;

    World* world = nullptr;
    int id = 0;
    Rank worker = 0;
    std::unique_ptr<BestModelClient> client;
    std::optional<membership::ConnectionId> connection;
    Deadline connects_at = {};
    Deadline acts_at = {};
    bool pulling = true;  // begins with that
    bool leaving = false;
    bool final_asked = false;
    int offers_left = 0;
    std::uint64_t offers = 0;
    std::uint64_t verdicts = 0;
    std::uint64_t version = 0;

    std::uint64_t mark(std::uint64_t sequence) const {
      return static_cast<std::uint64_t>(id) * 1000 + sequence;
    }
  };

  // SwampServerPorts
  void send(membership::ConnectionId to, const network::FrameHeader& header,
            std::span<const std::byte> payload, const ModelValues& owner) override;
  void close(membership::ConnectionId connection, const std::string& reason) override;
  void examine(std::uint64_t ticket, const ModelValues& model, std::uint64_t draw) override;
  void persist(SwampSnapshot snapshot) override;
  void accepted(const BestRecord& best) override;

  void start_server();
  void crash_server();
  void start_process(Rank worker);
  void crash_process(std::size_t which);
  void break_wire(membership::ConnectionId id);
  void lose_server_end(membership::ConnectionId id);
  void lose_worker_end(membership::ConnectionId id);
  void connect(Process& process);
  void deliver(membership::ConnectionId id);
  void deliver_some();
  void end_wires();
  void deliver_to_server(membership::ConnectionId id);
  void deliver_to_worker(membership::ConnectionId id);
  void act(Process& process);
  void offer(Process& process);
  void look_at(Process& process);
  void finish_examination();
  void finish_writing();
  void tick();
  void look_after_processes();
  void trouble();
  bool over() const { return processes_.empty() && server_->finished(); }

  bool chance(double probability) { return random_.uniform() < probability; }
  std::chrono::nanoseconds some_time(double milliseconds);
  void note(const std::string& line);
  void mix(const network::FrameHeader& header);

  RandomStream random_;
  bool trace_;
  Deadline now_ = Deadline{} + std::chrono::hours(1);
  Deadline next_tick_ = now_;
  Deadline calm_at_;  // no faults from here on
  double trouble_;    // how likely a fault is
  SwampSpec spec_;
  SwampServerSettings settings_;
  Oracle oracle_;
  std::uint64_t server_lives_ = 0;
  std::unique_ptr<BestModelServer> server_;
  std::map<membership::ConnectionId, Wire> wires_;
  membership::ConnectionId last_connection_ = 0;
  std::vector<std::unique_ptr<Process>> processes_;
  int last_process_ = 0;

  struct Examined {
    std::uint64_t ticket = 0;
    ModelValues model;
    std::uint64_t draw = 0;
    Deadline at = {};
  };
  std::optional<Examined> examining_;
  std::optional<SwampSnapshot> writing_;
  Deadline written_at_ = {};
  std::optional<SwampSnapshot> disk_;
  Outcome outcome_;
};

}  // namespace cohort::swamp::simulation
