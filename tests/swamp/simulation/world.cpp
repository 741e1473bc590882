#include "simulation/world.h"

#include <cmath>
#include <cstdio>
#include <limits>

#include "core/error.h"

namespace cohort::swamp::simulation {
namespace {

constexpr std::chrono::milliseconds kTick{50};
constexpr std::chrono::seconds kPatience{120};  // of virtual time, once it is calm
constexpr std::chrono::seconds kSilence{3};     // after which an end gives a connection up
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

World::World(Seed seed, bool trace)
    : random_(seed, "swamp world"),
      trace_(trace),
      calm_at_(now_ + some_time(4000)),
      trouble_(random_.below(4) == 0 ? 0 : random_.uniform(0, 0.08)),
      oracle_(spec_, false, false) {
  const char* policies[] = {"validated", "fifo", "latest"};
  spec_.workers = 1 + static_cast<int>(random_.below(4));
  spec_.values = kValues;
  spec_.policy = policies[random_.below(3)];
  spec_.hysteresis = 0;
  settings_.keeps_state = random_.below(3) > 0;
  settings_.policy.queue = 1 + random_.below(4);
  settings_.persist_tries = 3;
  settings_.late_start = std::chrono::seconds(20);
  settings_.idle_exit = std::chrono::seconds(60);
  oracle_ = Oracle(spec_, settings_.keeps_state, trouble_ == 0);
  note(spec_.policy + ", " + std::to_string(spec_.workers) + " workers" +
       (settings_.keeps_state ? ", state" : ""));
  start_server();
  for (Rank worker = 0; worker < spec_.workers; ++worker) start_process(worker);
}

World::~World() = default;

std::chrono::nanoseconds World::some_time(double milliseconds) {
  const double mean = milliseconds * random_.uniform(0, 2);
  return std::chrono::nanoseconds(static_cast<std::int64_t>(mean * 1e6));
}

void World::note(const std::string& line) {
  if (!trace_) return;
  const double at = std::chrono::duration<double>(now_.time_since_epoch()).count() - 3600;
  std::printf("%9.3f  %s\n", at, line.c_str());
}

void World::mix(const network::FrameHeader& header) {
  const auto time = static_cast<std::uint64_t>(now_.time_since_epoch().count());
  outcome_.digest = derive_seed(outcome_.digest, "frame",
                                {header.type, header.sequence, header.place, header.length, time});
}

// --- the server
// -----------------------------------------------------------------------------------

void World::start_server() {
  settings_.seed = ++server_lives_;
  settings_.log = [this](const std::string& line) { note(line); };
  SwampServerPorts& ports = *this;
  server_ = std::make_unique<BestModelServer>(settings_, ports, disk_ ? &*disk_ : nullptr);
  oracle_.server_started(server_->best().version);
}

void World::crash_server() {
  ++outcome_.server_crashes;
  const bool kept = writing_ && chance(0.5);
  note(kept ? "the server crashes; what it was writing is whole" : "the server crashes");
  if (kept) disk_ = std::move(writing_);
  writing_.reset();
  examining_.reset();
  for (auto& [id, wire] : wires_) wire.server_end = false;
  outcome_.evictions += server_->counters().evictions;
  outcome_.fenced += server_->counters().fenced;
  outcome_.duplicates += server_->counters().duplicates;
  server_.reset();
  start_server();
  for (const auto& [id, wire] : std::map<membership::ConnectionId, Wire>(wires_)) {
    if (!wire.silent_since) lose_worker_end(id);
  }
}

void World::send(membership::ConnectionId to, const network::FrameHeader& header,
                 std::span<const std::byte> payload, const ModelValues& owner) {
  Wire& wire = wires_.at(to);
  if (!wire.server_end) throw Violation("a frame to a connection that is no more");
  const auto type = static_cast<SwampFrame>(header.type);
  if (type == SwampFrame::kVerdict &&
      header.detail == static_cast<std::uint32_t>(VerdictKind::kAccepted)) {
    oracle_.sent(header.place, disk_);
  }
  const bool final = wire.pull == PullKind::kFinal;
  if (type == SwampFrame::kModel) oracle_.sent(header.place, disk_);
  if (type == SwampFrame::kModel && final) oracle_.sent_as_final(header.place);
  if (type == SwampFrame::kNothing && final) oracle_.sent_as_final(0);
  if (type == SwampFrame::kValues && final) oracle_.sent_as_final(*owner);
  mix(header);
  wire.to_worker.push_back({header, {payload.begin(), payload.end()}});
}

void World::close(membership::ConnectionId connection, const std::string& reason) {
  note("the server closes " + std::to_string(connection) + ": " + reason);
  Wire& wire = wires_.at(connection);
  wire.server_end = false;
  wire.to_server.clear();
}

void World::examine(std::uint64_t ticket, const ModelValues& model, std::uint64_t draw) {
  if (examining_) throw Violation("two examinations at a time");
  oracle_.examined(mark_of(*model));
  examining_ =
      Examined{.ticket = ticket, .model = model, .draw = draw, .at = now_ + some_time(200)};
}

void World::persist(SwampSnapshot snapshot) {
  if (!settings_.keeps_state) throw Violation("a snapshot that nobody wants");
  if (writing_) throw Violation("two snapshots at a time");
  writing_ = std::move(snapshot);
  written_at_ = now_ + some_time(chance(0.1) ? 1000 : 30);
}

void World::accepted(const BestRecord& best) {
  note("version " + std::to_string(best.version) + " is model " +
       std::to_string(mark_of(*best.model)));
  oracle_.accepted(best);
}

void World::finish_examination() {
  const Examined done = std::move(*examining_);
  examining_.reset();
  const bool calm = now_ >= calm_at_;
  if (!calm && chance(trouble_)) {
    server_->on_not_examined(done.ticket, "out of memory", now_);
    return;
  }
  std::vector<float> losses = losses_of(*done.model, done.draw);
  if (!calm && chance(trouble_)) losses.back() = std::numeric_limits<float>::quiet_NaN();
  server_->on_examined(done.ticket, losses, now_);
}

void World::finish_writing() {
  SwampSnapshot written = std::move(*writing_);
  writing_.reset();
  const std::uint64_t id = written.id;
  if (now_ < calm_at_ && chance(trouble_ * 3)) {
    note("the disk is full");
    server_->on_persist_failed(id, "no space", now_);
    return;
  }
  disk_ = std::move(written);
  server_->on_persisted(id, now_);
}

// --- the network
// ----------------------------------------------------------------------------------

void World::connect(Process& process) {
  const membership::ConnectionId id = ++last_connection_;
  wires_[id] = {.process = &process,
                .worker = process.worker,
                .server_end = true,
                .silent_since = {},
                .pull = {},
                .to_server = {},
                .to_worker = {}};
  process.connection = id;
  note("process " + std::to_string(process.id) + " of worker " + std::to_string(process.worker) +
       " connects: " + std::to_string(id));
  server_->on_connected(id, process.worker, now_);
  process.client->on_connected(now_);
}

void World::lose_server_end(membership::ConnectionId id) {
  Wire& wire = wires_.at(id);
  if (!wire.server_end) return;
  wire.server_end = false;
  server_->on_lost(id, now_);
}

void World::lose_worker_end(membership::ConnectionId id) {
  Wire& wire = wires_.at(id);
  if (wire.process == nullptr) return;
  Process& process = *wire.process;
  wire.process = nullptr;
  process.connection.reset();
  process.connects_at = now_ + some_time(200);
  process.client->on_lost(now_);
}

void World::break_wire(membership::ConnectionId id) {
  ++outcome_.breaks;
  note("connection " + std::to_string(id) + " breaks");
  // One side may learn of it much later, by silence.
  const bool late = chance(0.3);
  if (late) {
    wires_.at(id).silent_since = now_;
    if (chance(0.5)) lose_worker_end(id);
  } else {
    lose_server_end(id);
    lose_worker_end(id);
  }
}

void World::deliver(membership::ConnectionId id) {
  Wire& wire = wires_.at(id);
  const bool to_server = !wire.to_server.empty() && wire.server_end;
  if (to_server && (wire.to_worker.empty() || chance(0.5))) {
    deliver_to_server(id);
  } else if (!wire.to_worker.empty()) {
    deliver_to_worker(id);
  }
}

void World::deliver_to_server(membership::ConnectionId id) {
  Wire& wire = wires_.at(id);
  const Parcel parcel = std::move(wire.to_server.front());
  wire.to_server.pop_front();
  if (parcel.header.type == static_cast<network::FrameType>(SwampFrame::kPull)) {
    wire.pull = static_cast<PullKind>(parcel.header.detail);
  }
  const auto place = server_->place_for(id, parcel.header);
  std::span<const std::byte> payload = parcel.payload;
  if (place && chance(0.7)) {
    if (place->size() != payload.size()) throw Violation("a place of another size");
    std::copy(payload.begin(), payload.end(), place->begin());
    payload = *place;
  }
  server_->on_frame(id, parcel.header, payload, now_);
}

void World::deliver_to_worker(membership::ConnectionId id) {
  Wire& wire = wires_.at(id);
  const Parcel parcel = std::move(wire.to_worker.front());
  wire.to_worker.pop_front();
  if (wire.process == nullptr) return;
  Process& process = *wire.process;
  const auto place = process.client->place_for(parcel.header);
  std::span<const std::byte> payload = parcel.payload;
  if (place) {
    std::copy(payload.begin(), payload.end(), place->begin());
    payload = *place;
  }
  const std::uint64_t rejoined = process.client->membership().rejoined();
  process.client->on_frame(parcel.header, payload, now_);
  if (process.client->membership().rejoined() > rejoined) {
    // What it offers again has another incarnation.
    for (std::uint64_t n = 1; n <= process.offers; ++n) oracle_.fenced(process.mark(n));
  }
  look_at(process);
}

void World::Process::send(const network::FrameHeader& header, std::span<const std::byte> payload,
                          const ModelValues&) {
  if (!connection) throw Violation("a worker sends without a connection");
  Wire& wire = world->wires_.at(*connection);
  world->mix(header);
  if (wire.server_end) wire.to_server.push_back({header, {payload.begin(), payload.end()}});
}

// --- the workers
// ----------------------------------------------------------------------------------

void World::start_process(Rank worker) {
  auto process = std::make_unique<Process>();
  process->world = this;
  process->id = ++last_process_;
  process->worker = worker;
  process->offers_left = static_cast<int>(random_.below(8));
  process->client = std::make_unique<BestModelClient>(worker, spec_, *process);
  if (worker == 0) process->client->initialize(make_model(100, 0));
  process->client->pull(PullKind::kStart, 0);
  process->connects_at = now_ + some_time(300);
  processes_.push_back(std::move(process));
}

void World::crash_process(std::size_t which) {
  Process& process = *processes_[which];
  ++outcome_.worker_crashes;
  const Rank worker = process.worker;
  // Sometimes the old process goes on, cut off, beside the new one.
  const bool zombie = chance(0.3);
  note("process " + std::to_string(process.id) + (zombie ? " is cut off" : " crashes"));
  if (process.connection) {
    const membership::ConnectionId id = *process.connection;
    if (zombie || chance(0.3)) {
      wires_.at(id).silent_since = now_;
      lose_worker_end(id);
    } else {
      lose_worker_end(id);
      lose_server_end(id);
    }
  }
  if (zombie) {
    process.connects_at = now_ + some_time(4000);
  } else {
    processes_.erase(processes_.begin() + static_cast<std::ptrdiff_t>(which));
  }
  start_process(worker);
}

void World::offer(Process& process) {
  --process.offers_left;
  ++outcome_.offers;
  const auto quality = static_cast<float>(random_.uniform());
  double claim = quality + random_.uniform(-0.3, 0.3);
  const std::uint64_t mark = process.mark(++process.offers);
  const std::uint64_t kind = random_.below(12);
  if (kind == 0) claim = kNan;
  auto model = make_model(quality, mark);
  if (kind == 1) {
    auto broken = std::make_shared<std::vector<float>>(*model);
    (*broken)[7] = std::numeric_limits<float>::infinity();
    model = broken;
  }
  oracle_.offered(mark, quality, kind > 1);
  note("process " + std::to_string(process.id) + " offers model " + std::to_string(mark));
  if (process.client->offer(model, claim) != process.offers) {
    throw Violation("a worker counts its offers wrongly");
  }
}

void World::act(Process& process) {
  process.acts_at = now_ + some_time(100);
  if (process.pulling || process.leaving) return;
  if (process.offers_left > 0) {
    if (chance(0.6) && process.client->unsent() < kUnsentOffers) return offer(process);
    process.pulling = true;
    process.client->pull(PullKind::kPolicy, process.version);
  } else if (!process.final_asked && (process.worker == 0 || chance(0.3))) {
    process.final_asked = process.pulling = true;
    process.client->pull(PullKind::kFinal, 0);
  } else {
    process.leaving = true;
    process.client->leave();
  }
}

void World::look_at(Process& process) {
  for (const OfferVerdict& verdict : process.client->take_verdicts()) {
    ++process.verdicts;
    note("process " + std::to_string(process.id) + " hears: " + std::to_string(verdict.sequence) +
         " is " + std::string(to_text(verdict.kind)));
    oracle_.judged(process.mark(verdict.sequence), verdict);
    if (verdict.kind == VerdictKind::kAccepted) {
      oracle_.told(verdict.version, process.mark(verdict.sequence));
    }
  }
  if (process.pulling && process.client->pulled()) {
    process.pulling = false;
    if (const auto& answer = process.client->answer()) {
      const std::uint64_t mark = mark_of(process.client->values());
      if (answer->version == 0 && mark != 0) throw Violation("not worker 0's initial values");
      if (answer->version > 0) oracle_.told(answer->version, mark);
      process.version = answer->version;
    }
  }
  if (process.client->left() && process.verdicts != process.offers) {
    throw Violation("a worker is let go before all it offered is judged");
  }
}

// --- time
// -----------------------------------------------------------------------------------------

void World::tick() {
  next_tick_ = now_ + kTick;
  for (const auto& [id, wire] : wires_) {
    if (wire.server_end && wire.process != nullptr && !wire.silent_since) {
      server_->on_heard(id, now_);
    }
  }
  server_->on_tick(now_);
  end_wires();
}

void World::end_wires() {
  std::vector<membership::ConnectionId> ids;
  for (const auto& [id, wire] : wires_) ids.push_back(id);
  for (const membership::ConnectionId id : ids) {
    Wire& wire = wires_.at(id);
    if (wire.silent_since && now_ - *wire.silent_since > kSilence) {
      lose_server_end(id);
      lose_worker_end(id);
    }
    // What was said before the farewell arrives before it.
    if (!wire.server_end && !wire.silent_since && wire.to_worker.empty()) lose_worker_end(id);
    if (!wire.server_end && wire.process == nullptr) wires_.erase(id);
  }
}

void World::deliver_some() {
  std::vector<membership::ConnectionId> ids;
  for (const auto& [id, wire] : wires_) {
    if (!wire.silent_since) ids.push_back(id);
  }
  for (const membership::ConnectionId id : ids) {
    for (std::uint64_t count = random_.below(4); count > 0 && wires_.count(id) == 1; --count) {
      ++outcome_.events;
      deliver(id);
    }
  }
}

void World::look_after_processes() {
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    Process& process = *processes_[i];
    const bool left = process.client->left();
    if (left || process.client->membership().refused()) {
      note("process " + std::to_string(process.id) + (left ? " has left" : " is refused"));
      if (!left &&
          process.client->membership().refused()->find("already there") == std::string::npos) {
        throw Violation("a worker is refused: " + *process.client->membership().refused());
      }
      if (process.connection) {
        const membership::ConnectionId id = *process.connection;
        lose_worker_end(id);
        lose_server_end(id);
      }
      processes_.erase(processes_.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
    if (!process.connection && now_ >= process.connects_at) connect(process);
    if (now_ >= process.acts_at) act(process);
  }
}

void World::trouble() {
  if (now_ >= calm_at_ || !chance(trouble_ * 0.3)) return;
  const std::uint64_t what = random_.below(10);
  if (what == 0 && settings_.keeps_state) return crash_server();
  if (what <= 2 && !processes_.empty() && outcome_.worker_crashes < 12) {
    return crash_process(random_.below(processes_.size()));
  }
  if (wires_.empty()) return;
  const membership::ConnectionId id =
      std::next(wires_.begin(), static_cast<std::ptrdiff_t>(random_.below(wires_.size())))->first;
  break_wire(id);
}

Outcome World::run() {
  try {
    while (!over()) {
      now_ += std::chrono::duration_cast<Clock::duration>(some_time(4));
      if (now_ - calm_at_ > kPatience) throw Violation("it does not end: " + server_->text());
      if (examining_ && now_ >= examining_->at) finish_examination();
      if (writing_ && now_ >= written_at_) finish_writing();
      look_after_processes();
      deliver_some();
      if (now_ >= next_tick_) tick();
      trouble();
    }
  } catch (const PeerError& error) {
    throw Violation(std::string("the protocol is broken: ") + error.what());
  }
  const SwampCounters counters = server_->counters();
  outcome_.accepted = std::max(outcome_.accepted, counters.accepted);
  outcome_.evictions += counters.evictions;
  outcome_.fenced += counters.fenced;
  outcome_.duplicates += counters.duplicates;
  return outcome_;
}

}  // namespace cohort::swamp::simulation
