// One schedule of an elastic group: processes with a machine each, the links between them, owners
// that compute, gossip with two neighbours and contribute, and what goes wrong, all from one seed.
#pragma once

#include <array>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/random.h"
#include "membership/group.h"
#include "simulation/outcome.h"
#include "simulation/trace.h"
#include "simulation/virtual_time.h"

namespace cohort::membership::simulation {

enum class GroupEvent : std::uint8_t {
  kTick,     // of the machines and of every link's silence
  kDeliver,  // subject: link; extra: which end receives
  kOwner,    // subject: process; extra: its generation. It has computed
  kDoor,     // likewise. It looks for the group again
  kWake,     // subject: process
  kSpawn,    // subject: rank. A new process for it starts
  kFault,    // subject: which kind
};

enum GroupFault : std::uint32_t { kCrash, kPause, kBreak, kDeaf, kPartition, kLeave, kGroupFaults };

// What a schedule is made of. Many seeds lack whole kinds of faults.
struct GroupPlan {
  int size = 2;
  std::uint64_t operations = 10;  // after which all stop
  std::array<cohort::simulation::Time, kGroupFaults> every =
      {};                                     // mean time between two of a kind; 0: never
  std::optional<Rank> victim = std::nullopt;  // the only one that anything happens to
  bool gentle = false;                        // nothing lasts as long as a silence
  double unnoticed = 0;                       // ends of links that the other end is not told of
  cohort::simulation::Time calm_at = 0;
  cohort::simulation::Time delay = cohort::simulation::kMillisecond;
  cohort::simulation::Time compute = 50 * cohort::simulation::kMillisecond;
};

class GroupWorld {
 public:
  GroupWorld(Seed seed, std::FILE* trace);
  ~GroupWorld();
  cohort::simulation::ScheduleResult run();

 private:
  enum class Stage : std::uint8_t { kLooking, kIn, kOver };

  // A process's place in the group; one that is cut off comes back in another.
  class Process;
  struct Parcel {
    enum Kind : std::uint8_t { kElastic, kGossip, kEnd } kind = kElastic;
    Bytes payload = {};
    std::uint64_t round = 0;
  };
  struct Channel {
    std::deque<Parcel> parcels = {};
    cohort::simulation::Time last_arrival = 0;
    bool cut = false;  // what is sent from now on goes nowhere
    int waiting = 0;   // have arrived at a process that is stopped
  };
  struct Link {
    std::array<int, 2> process = {};
    std::array<bool, 2> open = {true, true};
    std::array<cohort::simulation::Time, 2> heard = {};
    std::array<Channel, 2> towards = {};
  };

  void dispatch(GroupEvent kind, std::uint32_t subject, std::uint64_t extra);
  void tick();
  void check_end();
  void end_process(Process& process, const std::string& why);
  [[noreturn]] void broken(const std::string& kind, const std::string& text) const;

  // network.cpp
  bool connect(Process& from, Rank to);
  void send(Process& from, Rank to, Parcel parcel);
  void close(Process& process, Rank to);
  void deliver(std::uint32_t link, int end);
  void lose(std::uint32_t link, int end, const char* why);
  void end_channel(std::uint32_t link, int to, bool told);
  cohort::simulation::Time blocked_until(const Link& link, int to) const;

  // processes.cpp
  Process& spawn(Rank rank);
  Process& next_life(Process& process);
  void look_for_group(Process& process);
  void introduced(Process& process, std::span<const std::byte> payload);
  void hear(Process& process, Rank from, Parcel parcel);
  void after(Process& process);
  void take_answer(Process& process);
  void check_answer(Process& process);
  void owner_goes_on(Process& process);
  bool has_gossip(const Process& process) const;
  Deadline clock(const Process& process) const;

  // faults.cpp
  void plan(GroupFault kind);
  void fault(GroupFault kind);
  Process* some_process();
  void crash(Process& process);

  friend class Process;
  Process& process(std::uint64_t id) { return *processes_[static_cast<std::size_t>(id)]; }
  bool chance(double probability) { return probability > 0 && random_.uniform() < probability; }
  cohort::simulation::Time draw(cohort::simulation::Time below) {
    return static_cast<cohort::simulation::Time>(random_.below(static_cast<std::uint64_t>(below)));
  }
  cohort::simulation::Time around(cohort::simulation::Time mean);
  void add(cohort::simulation::Time in, GroupEvent kind, std::uint32_t subject = 0,
           std::uint64_t extra = 0) {
    queue_.add(now_ + in, kind, subject, extra);
  }
  void say(const std::string& text) const {
    if (trace_.wanted()) trace_.line(now_, text);
  }

  GroupPlan plan_;
  RandomStream random_;
  cohort::simulation::Trace trace_;
  cohort::simulation::EventQueue<GroupEvent> queue_;
  cohort::simulation::Time now_ = 0;
  std::vector<std::unique_ptr<Process>> processes_;
  std::deque<Link> links_;
  std::vector<std::uint32_t> live_links_;
  std::vector<std::vector<cohort::simulation::Time>>
      blocked_;              // from rank, to rank: until when nothing gets through
  std::vector<int> newest_;  // process, by rank
  struct Confirmed {
    Bytes answer = {};
    std::set<int> by = {};  // processes
  };
  std::map<std::uint64_t, Confirmed> confirmed_;  // answers after which somebody got another
  cohort::simulation::Time gentle_until_ = 0;
  std::set<std::string> reasons_;  // for which somebody left
  cohort::simulation::ScheduleResult outcome_;
};

}  // namespace cohort::membership::simulation
