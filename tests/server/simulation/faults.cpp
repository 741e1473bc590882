// What goes wrong in the world, and when it stops.
#include <algorithm>
#include <sstream>

#include "simulation/world.h"

namespace cohort::server::simulation {

void World::plan(Fault kind) {
  const cohort::simulation::Time every = swarm_.every[kind];
  if (every == 0) return;
  const cohort::simulation::Time at = now_ + around(every);
  if (at < swarm_.calm_at) queue_.add(at, EventKind::kFault, kind);
}

WorkerProcess* World::some_worker() {
  const auto rank =
      static_cast<std::size_t>(random_.below(static_cast<std::uint64_t>(swarm_.workers)));
  const RankState& state = ranks_[rank];
  if (state.process < 0 || state.done || state.gone) return nullptr;
  WorkerProcess& process = *processes_[static_cast<std::size_t>(state.process)];
  return process.alive && !process.paused ? &process : nullptr;
}

void World::fault(Fault kind) {
  plan(kind);
  if (tracing()) say(std::string("fault: ") + to_text(kind));
  if (kind == kServerCrash) return crash_server();
  if (kind == kRestart) return restart_job();
  if (kind == kServerPause) {
    if (!server_.up() || server_.paused) return;
    server_.paused = true;
    const cohort::simulation::Time until =
        now_ + around(chance(0.5) ? cohort::simulation::kSecond : 4 * cohort::simulation::kSecond);
    for (const auto& each : processes_) oracle_.process_hindered(each->index(), until);
    ++outcome_.pauses;
    queue_.add(until, EventKind::kWakeServer);
    return;
  }
  WorkerProcess* process = some_worker();
  if (process == nullptr) return;
  oracle_.process_hindered(process->index(), now_);
  switch (kind) {
    case kBreak:
      if (process->connection != 0) {
        ++outcome_.breaks;
        break_wire(wire(process->connection));
      }
      return;
    case kClog: {
      const cohort::simulation::Time until =
          now_ + around(chance(0.5) ? 300 * cohort::simulation::kMillisecond
                                    : 3 * cohort::simulation::kSecond);
      oracle_.process_hindered(process->index(), until);
      const std::int64_t which = draw(3);
      if (which != 0) process->clogged_until[kServerEnd] = until;
      if (which != 1) process->clogged_until[kWorkerEnd] = until;
      return;
    }
    case kCrash:
      return crash_worker(*process);
    case kPause:
      return pause_worker(*process, around(chance(0.5) ? cohort::simulation::kSecond
                                                       : 4 * cohort::simulation::kSecond));
    case kReplace:
      pause_worker(*process, around(4 * cohort::simulation::kSecond));
      queue_.add(now_ + around(cohort::simulation::kSecond), EventKind::kSpawn,
                 static_cast<std::uint32_t>(process->rank()));
      return;
    case kDie:
      // Without the initial values, which worker 0 brings, and before every worker has been there
      // once, nobody can go on, and should not.
      if (process->rank() == 0 || process->phase() == WorkerProcess::Phase::kJoining) return;
      if (restarted_) return;  // likewise: a job that begins again waits for all of them
      crash_worker(*process);
      ranks_[static_cast<std::size_t>(process->rank())].gone = true;
      return;
    default:
      return;
  }
}

void World::calm() {
  if (tracing()) say("no faults from here on");
  calm_ = true;
  if (server_.paused) wake_server();
  // What was held up comes now: no heartbeat overtakes it.
  for (const std::uint32_t id : live_wires_) {
    for (const End to : {kServerEnd, kWorkerEnd}) {
      if (blocked_until(wire(id), to) <= now_) continue;
      wire(id).towards[to].clogged_until = 0;
      for (std::size_t i = 0; i < wire(id).towards[to].size(); ++i) {
        queue_.add(now_ + 1, EventKind::kDeliver, id, to);
      }
    }
  }
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    WorkerProcess& process = *processes_[i];
    process.clogged_until[0] = process.clogged_until[1] = 0;
    if (!process.alive) continue;
    const RankState& state = ranks_[static_cast<std::size_t>(process.rank())];
    if (state.process != process.index()) {
      queue_.add(now_ + around(cohort::simulation::kSecond), EventKind::kKill,
                 static_cast<std::uint32_t>(i));
    }
    if (process.paused) wake_worker(process);
  }
}

void World::spawn(Rank rank) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  if (state.gone || state.done) return;
  if (state.process >= 0 && processes_[static_cast<std::size_t>(state.process)]->alive &&
      !processes_[static_cast<std::size_t>(state.process)]->paused) {
    return;  // what was to be replaced has woken up in time
  }
  const int index = static_cast<int>(processes_.size());
  if (tracing())
    say("process " + std::to_string(index) + " of worker " + std::to_string(rank) + " starts");
  if (calm_ && state.process >= 0) {
    queue_.add(now_ + around(cohort::simulation::kSecond), EventKind::kKill,
               static_cast<std::uint32_t>(state.process));
  }
  oracle_.process_started(index, rank);
  processes_.push_back(std::make_unique<WorkerProcess>(*this, index, rank, restarted_));
  state.process = index;
  queue_.add(now_ + 1, EventKind::kConnect, static_cast<std::uint32_t>(index));
}

void World::crash_worker(WorkerProcess& process) {
  if (!process.alive || process.phase() == WorkerProcess::Phase::kDone) return;
  if (tracing()) say("process " + std::to_string(process.index()) + " dies");
  ++outcome_.crashes;
  process.alive = false;
  oracle_.process_died(process.index());
  if (process.connection != 0) {
    Wire& lost = wire(process.connection);
    process.connection = 0;
    lost.open[kWorkerEnd] = false;
    drop_tail(lost.towards[kServerEnd]);
    if (chance(swarm_.unnoticed)) {
      lost.towards[kServerEnd].cut = true;
    } else {
      end_channel(lost, kServerEnd);
    }
  }
  const RankState& state = ranks_[static_cast<std::size_t>(process.rank())];
  if (state.process == process.index() && !state.gone) {
    queue_.add(now_ + around(cohort::simulation::kSecond), EventKind::kSpawn,
               static_cast<std::uint32_t>(process.rank()));
  }
}

// A rank may have two processes for a while, and the server keeps to the one it has as long as it
// seems to hear of it: then the supervisor tries again. Nothing else is a reason to turn an honest
// worker away.
void World::worker_refused(WorkerProcess& process, const std::string& why) {
  // The oracle has seen that it was away for long when the job went back.
  const bool of_old = oracle_.lives() > 0 && why.find("went back to") != std::string::npos;
  if (why.find("already there") == std::string::npos && !of_old) {
    throw Violation(Breach::kOther,
                    "worker " + std::to_string(process.rank()) + " is refused: " + why);
  }
  crash_worker(process);
}

void World::pause_worker(WorkerProcess& process, cohort::simulation::Time length) {
  if (process.phase() == WorkerProcess::Phase::kDone) return;
  if (tracing()) say("process " + std::to_string(process.index()) + " is stopped");
  ++outcome_.pauses;
  process.paused = true;
  oracle_.process_hindered(process.index(), now_ + length);
  queue_.add(now_ + length, EventKind::kWake, static_cast<std::uint32_t>(process.index()));
}

void World::wake_worker(WorkerProcess& process) {
  if (!process.alive || !process.paused) return;
  if (tracing()) say("process " + std::to_string(process.index()) + " goes on");
  process.paused = false;
  const RankState& state = ranks_[static_cast<std::size_t>(process.rank())];
  if (state.process != process.index()) {  // a zombie: it lives until somebody finds it
    queue_.add(now_ + around(2 * cohort::simulation::kSecond), EventKind::kKill,
               static_cast<std::uint32_t>(process.index()));
  }
  const bool timer_first = chance(0.5);
  const auto run_timer = [&] {
    if (!process.timer_missed) return;
    process.timer_missed = false;
    process.timer();
  };
  if (timer_first) run_timer();
  if (process.connection != 0) {
    Wire& waiting = wire(process.connection);
    if (chance(0.5)) waiting.heard[kWorkerEnd] = now_;
    Channel& channel = waiting.towards[kWorkerEnd];
    for (; channel.waiting > 0 && process.alive; --channel.waiting) deliver(waiting, kWorkerEnd);
  }
  if (!timer_first && process.alive) run_timer();
}

void World::crash_server() {
  if (!server_.up()) return;
  if (tracing()) say("server dies");
  ++outcome_.server_crashes;
  oracle_.server_died(now_);
  for (const std::uint32_t id : live_wires_) wire(id).towards[kWorkerEnd].copy_lent();
  server_.crash();
  server_.paused = false;
  for (const std::uint32_t id : live_wires_) {
    Wire& lost = wire(id);
    if (!lost.open[kServerEnd]) continue;
    lost.open[kServerEnd] = false;
    drop_tail(lost.towards[kWorkerEnd]);
    if (chance(swarm_.unnoticed)) {
      lost.towards[kWorkerEnd].cut = true;
    } else {
      end_channel(lost, kWorkerEnd);
    }
  }
  queue_.add(now_ + around(cohort::simulation::kSecond), EventKind::kServerUp);
}

// By a signal, which workers answer when they can, or without one.
void World::restart_job() {
  const bool all_there =
      std::none_of(ranks_.begin(), ranks_.end(), [](const RankState& state) { return state.gone; });
  if (all_there && chance(0.25)) return resume_first_alone();
  if (!chance(0.4)) return end_job();
  if (tracing()) say("the job is interrupted");
  for (const auto& process : processes_) {
    if (process->alive) process->interrupt();
  }
  queue_.add(now_ + draw(3 * cohort::simulation::kSecond), EventKind::kEndJob);
}

// Worker 0 dies and is resumed, while the others are stopped for so long that they are given up.
void World::resume_first_alone() {
  if (tracing()) say("worker 0 is to be resumed alone");
  take_checkpoint();
  for (const auto& process : processes_) {
    if (!process->alive || process->paused) continue;
    if (process->rank() == 0) {
      crash_worker(*process);
    } else {
      pause_worker(*process, swarm_.evict_after + draw(5 * cohort::simulation::kSecond));
    }
  }
}

void World::take_checkpoint() {
  restarted_ = saved_ ? saved_
                      : std::make_shared<Checkpoint>(
                            checkpoint_of(swarm_.workers, 0, initial_values(swarm_.workers)));
  beginnings_ = oracle_.beginnings();
}

void World::end_job() {
  if (tracing()) say("the job ends, and is started again");
  ++outcome_.restarts;
  take_checkpoint();
  for (RankState& state : ranks_) state.gone = true;  // nobody starts another for now
  for (const auto& process : processes_) crash_worker(*process);
  for (Rank rank = 0; rank < swarm_.workers; ++rank) {
    RankState& state = ranks_[static_cast<std::size_t>(rank)];
    // By hand that may be much later than the others.
    const cohort::simulation::Time late =
        rank == 0 && chance(0.2) ? 12 * cohort::simulation::kSecond : 0;
    queue_.add(now_ + late + around(cohort::simulation::kSecond), EventKind::kSpawn,
               static_cast<std::uint32_t>(rank));
    state.done = state.gone = false;
  }
  if (swarm_.keeps_state && chance(0.5)) crash_server();
}

void World::wake_server() {
  if (!server_.up() || !server_.paused) return;
  if (tracing()) say("server goes on");
  server_.paused = false;
  if (chance(0.5)) on_server([&] { server_.machine().on_tick(cohort::simulation::moment(now_)); });
  std::vector<std::uint32_t> waiting;
  for (const std::uint32_t id : live_wires_) {
    if (chance(0.5)) wire(id).heard[kServerEnd] = now_;
    for (int i = 0; i < wire(id).towards[kServerEnd].waiting; ++i) waiting.push_back(id);
  }
  shuffle(std::span<std::uint32_t>(waiting), random_);
  for (const std::uint32_t id : waiting) {
    --wire(id).towards[kServerEnd].waiting;
    deliver(wire(id), kServerEnd);
  }
}

}  // namespace cohort::server::simulation
