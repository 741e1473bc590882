// Knows what must be true, from the frames it sees and from the model's own digits, without asking
// the machines under test what they think. Every method throws Violation when it is not.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "network/frame.h"
#include "server/messages.h"
#include "server/parameter_server.h"
#include "server/shard_client.h"
#include "simulation/clocks.h"
#include "simulation/marks.h"
#include "simulation/swarm.h"

namespace cohort::server::simulation {

enum class Breach { kLost, kTwice, kGap, kStuck, kFence, kDiverged, kTorn, kOther };
const char* to_text(Breach breach);
std::string push_text(Rank rank, int push);  // "push 3 of worker 1"

class Violation : public std::runtime_error {
 public:
  Violation(Breach what, const std::string& text) : std::runtime_error(text), breach(what) {}
  Breach breach;
};

class Oracle {
 public:
  Oracle(Seed seed, const Swarm& swarm);

  // The server's life. `durable`: what it starts from.
  void server_started(const ServerSnapshot* durable, std::uint64_t version,
                      cohort::simulation::Time now);
  void server_died(cohort::simulation::Time now);
  void snapshot_made(const ServerSnapshot& snapshot);
  void snapshot_takes(cohort::simulation::Time time);  // to be written; from now on
  void snapshot_kept(std::uint64_t id);                // it is on disk
  // The model is at rest: before a change, and after every call.
  void model_seen(std::uint64_t version, std::span<const float> parameters,
                  cohort::simulation::Time now);
  void call_ended(
      cohort::simulation::Time now);  // what was promised during the call must be true now
  void server_sent(int process, const network::FrameHeader& header,
                   std::span<const std::byte> payload, cohort::simulation::Time now);
  void server_heard(int process, cohort::simulation::Time now);
  void server_got(int process, const network::FrameHeader& header,
                  std::span<const std::byte> payload);
  void server_evicted(Rank rank, cohort::simulation::Time now);
  // All workers have come with a checkpoint: there is no model until worker 0 brings it.
  void job_forgotten(cohort::simulation::Time now);
  // Worker 0 is about to bring these to a server that has none.
  void values_brought(const Checkpoint& values);
  std::uint64_t beginnings() const { return beginnings_; }  // models that were brought
  int lives() const { return life_; }  // how often the job has gone back to a checkpoint
  void server_lost(int process, cohort::simulation::Time now);  // the connection by which it joined

  // The workers' lives.
  void process_started(int process, Rank rank);
  void process_died(int process);
  // Stopped, cut off: it may be late through no fault of ours.
  void process_hindered(int process, cohort::simulation::Time until);
  void worker_sent(int process, const network::FrameHeader& header,
                   std::span<const std::byte> payload);
  void push_begun(int process, int push, bool poisoned);
  void push_ended(int process, int push, const PushOutcome& outcome);
  void values_pulled(int process, int boot, std::uint64_t version, std::span<const float> values);
  void process_left(int process);

  void job_ended(const ServerCounters& counters);
  void check_abandoned(
      cohort::simulation::Time now) const;  // the server ends although somebody still needs it
  std::uint64_t excused() const { return excused_; }
  std::uint64_t applied() const;

 private:
  enum class Told { kNothing, kApplied, kNotApplied, kFenced };
  struct Push {
    int process = -1;
    std::uint64_t incarnation = 0;
    std::uint64_t sequence = 0;
    Told told = Told::kNothing;
    bool poisoned = false;
    int first_boot = 0;  // that it was sent to
    cohort::simulation::Time applied_at = 0;
    bool acknowledged = false;  // the server has said that it is in the model
    bool refused = false;       // or that it is in none
    int refused_in = -1;        // the boot that said so last
    int vanished_in = -1;       // the boot that began without it, though it had been in the model
  };
  struct Process {
    Rank rank = 0;
    std::uint64_t incarnation = 0;  // the one it was given last
    std::uint64_t asked_with = 0;   // the one its last kJoin held
    bool resumed = false;           // and whether it came with a checkpoint
    bool silent = false;            // for so long that it may be evicted, since it joined
    std::uint64_t fenced = 0;       // the last of its incarnations that was
    int fenced_in = 0;              // the boot that did it
    bool alive = true;
    bool left = false;
    bool released = false;  // it got its goodbye: nothing is taken from it any more
    cohort::simulation::Time hindered_until = -1;
    int joined_boot = -1;
    int joined_life = 0;
    cohort::simulation::Time heard = 0;
    cohort::simulation::Time joined_at = 0;
    std::uint64_t reads = 0;  // the pull that is being answered
    std::optional<cohort::simulation::Time> disconnected_at =
        {};  // the connection by which it joined, at the server
  };
  struct Kept {
    Digits digits = {};
    Clocks clocks = {};
  };
  struct Promise {
    Rank rank = 0;
    std::uint64_t incarnation = 0;
    std::uint64_t applied_to = 0;
    std::uint64_t durable_to = 0;
  };

  struct Seen {
    int process = 0;
    int boot = 0;
    std::vector<float> values = {};
  };

  bool begin(std::uint64_t version, std::span<const float> parameters,
             cohort::simulation::Time now);
  void commit(std::uint64_t version, std::span<const float> parameters,
              cohort::simulation::Time now);
  void check_round(const std::vector<std::pair<Rank, int>>& added, cohort::simulation::Time now);
  bool repeated(const std::vector<std::pair<Rank, int>>& added) const;
  void check_promise(const Promise& promise) const;
  void on_joined(int process, std::uint64_t incarnation, const JoinedBody& body,
                 cohort::simulation::Time now);
  void on_fenced(Process& process, std::uint64_t incarnation, cohort::simulation::Time now);
  void check_gap(int process) const;
  void check_alone(Rank rank) const;
  void check_beneath(cohort::simulation::Time now) const;
  void check_lost(std::uint64_t counted) const;
  bool is_member(const Process& process, cohort::simulation::Time now) const;
  bool may_be_lost(const Push& push) const;
  bool may_differ(const Seen& seen, int boot, std::uint64_t version,
                  std::span<const float> values) const;
  bool lossy() const;  // an acknowledged push is lost, as it may be
  Push* find(Rank rank, std::uint64_t incarnation, std::uint64_t sequence);
  [[noreturn]] void fail(Breach breach, const std::string& text) const;

  Seed seed_;
  Swarm swarm_;
  int boot_ = -1;
  std::vector<cohort::simulation::Time> started_at_;  // by boot
  bool under_way_ = false;  // somebody has joined in this boot but to begin again
  bool serving_ = false;    // values have been sent in this boot
  std::uint64_t version_ = 0;
  bool known_ = false;  // the model has been seen in this boot
  int life_ = 0;
  std::uint64_t beginnings_ = 0;
  std::vector<Checkpoint> brought_ = {};
  Digits digits_ = {};
  Digits durable_digits_ = {};
  float shared_ = 0;  // what element 0 must be
  std::vector<float> model_;
  std::array<std::array<Push, kMaxPushes>, kMaxWorkers> pushes_ = {};
  std::vector<Process> processes_;
  std::array<std::uint64_t, kMaxWorkers> issued_ = {};  // highest incarnation of a rank, ever
  std::array<std::uint64_t, kMaxWorkers> issued_in_boot_ = {};
  std::vector<Promise> promises_;
  Clocks clocks_ = {};
  Clocks durable_clocks_ = {};
  std::map<std::uint64_t, Kept> snapshots_;  // not yet on disk
  // By boot and version; several where the job has gone back.
  std::map<std::pair<int, std::uint64_t>, std::vector<std::vector<float>>> history_;
  std::map<std::pair<int, std::uint64_t>, cohort::simulation::Time> made_at_;  // likewise
  std::map<std::uint64_t, std::vector<Seen>> seen_;  // kSync: what workers got of a version
  cohort::simulation::Time longest_write_ = 0;
  std::uint64_t excused_ = 0;
};

}  // namespace cohort::server::simulation
