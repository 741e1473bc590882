#include "simulation/world.h"

#include <cmath>

#include "core/error.h"

namespace cohort::server::simulation {
namespace {

constexpr cohort::simulation::Time kTickEvery = 100 * cohort::simulation::kMillisecond;
// Peace until everybody must be done, besides the computing: a few evictions may have to pass.
constexpr cohort::simulation::Time kPatience = 40 * cohort::simulation::kSecond;

JobSpec make_spec(const Swarm& swarm) {
  JobSpec spec;
  spec.workers = swarm.workers;
  spec.size = model_size(swarm.workers);
  spec.mode = swarm.mode;
  if (swarm.mode == ServerMode::kBounded) spec.staleness = swarm.staleness;
  spec.backup_workers = swarm.backup_workers;
  spec.optimizer_options.momentum = 0;
  spec.decay = {{{0, spec.size}, 0}};
  spec.schedule_options.lr = 1;
  spec.total_updates = swarm.total_updates;
  spec.layout_digest = "digest";
  return spec;
}

}  // namespace

World::World(Seed seed, std::FILE* trace)
    : seed_(seed),
      swarm_(draw_swarm(seed)),
      spec_(make_spec(swarm_)),
      random_(seed, "world"),
      trace_(trace),
      oracle_(seed, swarm_),
      server_(*this) {}

Outcome World::run() {
  if (tracing()) say("schedule " + std::to_string(seed_) + ": " + swarm_.text());
  const double work = 1.5 * kMaxPushes * swarm_.slowness * static_cast<double>(swarm_.compute);
  until_ = swarm_.calm_at + kPatience + static_cast<cohort::simulation::Time>(work);
  try {
    queue_.add(draw(cohort::simulation::kSecond), EventKind::kServerUp);
    for (Rank rank = 0; rank < swarm_.workers; ++rank) {
      queue_.add(draw(cohort::simulation::kSecond), EventKind::kSpawn,
                 static_cast<std::uint32_t>(rank));
    }
    queue_.add(kTickEvery, EventKind::kTick);
    queue_.add(swarm_.calm_at, EventKind::kCalm);
    for (std::uint32_t kind = 0; kind < kFaultKinds; ++kind) plan(static_cast<Fault>(kind));
    while (!over()) {
      const Event event = queue_.take();
      now_ = event.time;
      if (now_ > until_) stuck();
      ++outcome_.events;
      note(event);
      dispatch(event);
    }
    oracle_.job_ended(server_.machine().counters());
    outcome_.counted = server_.machine().counters().lost;
  } catch (const Violation& violation) {
    outcome_.breach = violation.breach;
    outcome_.text = violation.what();
  } catch (const std::exception& error) {
    outcome_.breach = Breach::kOther;
    outcome_.text = std::string("an exception: ") + error.what();
  }
  if (outcome_.breach && tracing()) say("VIOLATION: " + outcome_.text);
  outcome_.hash = trace_.hash();
  outcome_.applied = oracle_.applied();
  outcome_.excused = oracle_.excused();
  outcome_.gone_back = static_cast<std::uint64_t>(oracle_.lives());
  return outcome_;
}

void World::note(const Event& event) {
  trace_.mix(static_cast<std::uint64_t>(event.time));
  trace_.mix(static_cast<std::uint64_t>(event.kind) << 32 | event.subject);
  trace_.mix(event.extra);
}

void World::dispatch(const Event& event) {
  const auto process = [&]() -> WorkerProcess& { return *processes_[event.subject]; };
  switch (event.kind) {
    case EventKind::kTick:
      return tick();
    case EventKind::kDeliver:
      return deliver(wire(event.subject), static_cast<End>(event.extra));
    case EventKind::kProcess:
      if (!process().alive || event.extra != process().generation()) return;
      if (process().paused) {
        process().timer_missed = true;
        return;
      }
      return process().timer();
    case EventKind::kConnect:
      return connect(process());
    case EventKind::kPersisted:
      if (server_.paused) {  // the writing thread is stopped as well
        queue_.add(now_ + kTickEvery, event.kind, event.subject, event.extra);
        return;
      }
      if (tracing()) say("snapshot " + std::to_string(event.extra) + " is written, or has failed");
      return server_.persisted(static_cast<int>(event.subject), event.extra);
    case EventKind::kRoom:
      return give_room(wire(event.subject));
    case EventKind::kServerUp:
      if (tracing()) say("server starts");
      return server_.start();
    case EventKind::kWakeServer:
      return wake_server();
    case EventKind::kWake:
      return wake_worker(process());
    case EventKind::kKill:
      return crash_worker(process());
    case EventKind::kEndJob:
      return end_job();
    case EventKind::kSpawn:
      return spawn(static_cast<Rank>(event.subject));
    case EventKind::kFault:
      return fault(static_cast<Fault>(event.subject));
    case EventKind::kCalm:
      return calm();
  }
}

void World::tick() {
  queue_.add(now_ + kTickEvery, EventKind::kTick);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < live_wires_.size(); ++i) {
    Wire& each = wire(live_wires_[i]);
    heartbeat(each);
    if (each.open[kServerEnd] || each.open[kWorkerEnd]) live_wires_[kept++] = each.id;
  }
  live_wires_.resize(kept);
  if (!server_.up() || server_.paused) return;
  on_server([&] { server_.machine().on_tick(cohort::simulation::moment(now_)); });
  if (const auto why = server_.machine().finished()) finish_server(*why);
}

void World::finish_server(const std::string& why) {
  if (tracing()) say("server ends: " + why);
  oracle_.check_abandoned(now_);
  outcome_.evictions = server_.machine().counters().evictions;
  server_done_ = true;
}

void World::stuck() {
  std::string text =
      "not done " + std::to_string((until_ - swarm_.calm_at) / cohort::simulation::kSecond) +
      " s after the last fault: server " + (server_.up() ? server_.machine().text() : "is down");
  for (const auto& process : processes_) {
    if (!process->alive) continue;
    text += "; process " + std::to_string(process->index()) + " of worker " +
            std::to_string(process->rank()) +
            (process->phase() == WorkerProcess::Phase::kDone
                 ? " is done"
                 : (process->connection == 0 ? " (not connected)" : "") +
                       std::string(" waits for ") + process->client().waits_for());
  }
  throw Violation(Breach::kStuck, text);
}

void World::on_server(const std::function<void()>& call) {
  call();
  ParameterServer& machine = server_.machine();
  oracle_.model_seen(machine.version(), machine.parameters(), now_);
  oracle_.call_ended(now_);
  if (oracle_.beginnings() != beginnings_) restarted_.reset();
}

void World::save(std::uint64_t version, std::span<const float> values, bool always) {
  if (swarm_.every[kRestart] == 0 || (!always && !chance(0.4))) return;
  saved_ = std::make_shared<Checkpoint>(checkpoint_of(swarm_.workers, version, values));
}

bool World::chance(double probability) {
  return probability > 0 && random_.uniform() < probability;
}

cohort::simulation::Time World::around(cohort::simulation::Time mean) {
  return static_cast<cohort::simulation::Time>(-std::log(1 - random_.uniform()) *
                                               static_cast<double>(mean)) +
         1;
}

cohort::simulation::Time World::compute_time(Rank rank) {
  const double slowness = rank == swarm_.workers - 1 ? swarm_.slowness : 1;
  return static_cast<cohort::simulation::Time>(static_cast<double>(swarm_.compute) * slowness *
                                               random_.uniform(0.7, 1.3));
}

void World::wake_me(WorkerProcess& process, cohort::simulation::Time in, std::uint64_t generation) {
  queue_.add(now_ + in, EventKind::kProcess, static_cast<std::uint32_t>(process.index()),
             generation);
}

int World::next_push(Rank rank) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  return state.pushes < kMaxPushes ? state.pushes++ : -1;
}

void World::worker_done(WorkerProcess& process) {
  if (tracing()) say("process " + std::to_string(process.index()) + " has left");
  oracle_.process_left(process.index());
  process.alive = false;
  Wire& last = wire(process.connection);
  process.connection = 0;
  last.open[kWorkerEnd] = false;
  end_channel(last, kServerEnd);
  RankState& state = ranks_[static_cast<std::size_t>(process.rank())];
  if (state.process == process.index()) state.done = true;
}

void World::snapshot_begun(int boot, std::uint64_t id) {
  if (tracing()) say("snapshot " + std::to_string(id) + " is begun");
  const cohort::simulation::Time takes = around(swarm_.persist_takes);
  oracle_.snapshot_takes(takes);
  queue_.add(now_ + takes, EventKind::kPersisted, static_cast<std::uint32_t>(boot), id);
}

void World::server_logs(const std::string& line) {
  if (tracing()) say("  server: " + line);
  // What the wire does not show: that the job begins again, and whom the server has given up.
  if (line.rfind("the job begins again", 0) == 0) oracle_.job_forgotten(now_);
  Rank rank = 0;
  if (std::sscanf(line.c_str(), "worker %d is evicted", &rank) == 1 &&
      line.find("is evicted") != std::string::npos) {
    oracle_.server_evicted(rank, now_);
  }
}

void World::model_changes(std::span<const std::byte> memory) {
  for (const std::uint32_t id : live_wires_) wire(id).towards[kWorkerEnd].copy_lent(memory);
}

void World::server_updates() {
  oracle_.model_seen(server_.machine().version(), server_.machine().parameters(), now_);
}

}  // namespace cohort::server::simulation
