#include <algorithm>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "server/numbers.h"
#include "server/server_state.h"
#include "server/wire_format.h"

namespace cohort {

using Presence = Member::Presence;

namespace {

constexpr std::uint64_t kMaxUpdates = std::uint64_t{1} << 53;
std::string named(Rank worker) { return "worker " + std::to_string(worker); }

}  // namespace

void ParameterServer::State::on_join(ConnectionId connection, const FrameHeader& header,
                                     std::span<const std::byte> payload) {
  const auto found = connections.find(connection);
  if (found == connections.end()) {
    ++counters.fenced;
    return;
  }
  const Rank worker = found->second.worker;
  if (payload.size() < kJoinNumbers) {
    throw PeerError(named(worker) + " asked to join without a job");
  }
  const auto kind = static_cast<JoinKind>(get_u64(payload.subspan(sizeof lineage)));
  const bool again = found->second.joined && kind != JoinKind::kGoBack;
  if (again || found->second.held_since || found->second.restart) {
    throw PeerError(named(worker) + " asked twice to join");
  }
  const std::uint64_t known_lineage = get_u64(payload);
  if (kind == JoinKind::kGoBack) return go_back(connection, header, payload);
  if (known_lineage != 0 && known_lineage != lineage) {
    return refuse(connection, lost_state_text());
  }
  if (kind == JoinKind::kCheckpoint && known_lineage == 0 && spec) {
    return hold_restart(connection, header, payload);
  }
  join(connection, header, payload);
}

std::string ParameterServer::State::lost_state_text() const {
  const std::string server = "server " + std::to_string(options.server);
  if (fell_back) {
    return server + " went back to an older snapshot because its newest one is damaged, and what " +
           "was pushed in between is lost: end all workers of the job and go on from their " +
           "checkpoints, with --resume";
  }
  if (gone_back) {
    return server + " went back to worker 0's checkpoint without this worker, and what it " +
           "had pushed since then is not in the model any more: go on from this worker's own " +
           "checkpoint, with --resume";
  }
  return server + " was restarted without its state (start it with --state-dir); the run cannot " +
         "go on, but from the workers' checkpoints, with --resume";
}

void ParameterServer::State::join(ConnectionId connection, const FrameHeader& header,
                                  std::span<const std::byte> payload) {
  Connection& own = connections.at(connection);
  const Rank worker = own.worker;
  const std::uint64_t known_lineage = get_u64(payload);
  if (!accept_spec(connection, worker, job_text(payload))) return;
  Member& member = members->at(worker);
  if (known_lineage != 0 && restored) {
    member.holds = std::max(member.holds, version_near(model->version(), header.detail));
    if (!recovering) skip_held_versions();
  }
  if (header.incarnation == 0) {
    own.held_before = header.place;
    hold_or_join(connection, member);
  } else {
    return_with(connection, member, header);
  }
}

// What is wrong with a job whatever the server has of one; empty: nothing, and `given` is the job.
std::string ParameterServer::State::objection(Rank worker, const std::string& text,
                                              JobSpec& given) const {
  try {
    given = job_spec_from(text);
  } catch (const PeerError& error) {
    return error.what();
  }
  if (given.server != options.server) {
    return "this is server " + std::to_string(options.server) + ", not server " +
           std::to_string(given.server) + "; are the servers' addresses in order?";
  }
  if (worker < 0 || worker >= given.workers) {
    return "there is no " + named(worker) + " in a job of " + std::to_string(given.workers);
  }
  return differences_from_told(options.told, given);
}

bool ParameterServer::State::accept_spec(ConnectionId connection, Rank worker,
                                         const std::string& text) {
  if (spec && text == spec_text && members->has(worker)) return true;
  std::string wrong;
  try {
    auto given = std::make_unique<JobSpec>();
    wrong = objection(worker, text, *given);
    if (wrong.empty() && spec) {
      wrong = differences(*spec, *given);
    } else if (wrong.empty()) {
      model.emplace(*given);
      members.emplace(given->workers);
      for (Member& member : members->all()) {
        const auto rank = static_cast<std::size_t>(member.worker);
        if (rank < incarnations.size()) member.incarnation = incarnations[rank];
      }
      spec = std::move(given);
      spec_text = cohort::to_json(*spec).dump();
    }
  } catch (const std::bad_alloc&) {
    wrong = "server " + std::to_string(options.server) + " has not enough memory for its share";
  }
  if (wrong.empty()) return true;
  if (!spec) model.reset();
  refuse(connection, wrong);
  return false;
}

void ParameterServer::State::refuse(ConnectionId connection, const std::string& why) {
  const auto found = connections.find(connection);
  log(named(found->second.worker) + " is refused: " + why);
  FrameHeader header{.type = static_cast<FrameType>(ServerFrame::kRefused)};
  const std::string text = why.substr(0, 4096);
  header.length = static_cast<std::uint32_t>(text.size());
  ports.send(connection, header, std::as_bytes(std::span(text)), Kept::kCopy);
  forget(connection, "refused");  // why has been said
}

// The connection is new, the worker is not.
void ParameterServer::State::return_with(ConnectionId connection, Member& member,
                                         const FrameHeader& header) {
  const bool known = header.incarnation == member.incarnation &&
                     (member.live() || member.presence == Presence::kLeft);
  if (!known) {
    ++counters.fenced;
    count_lost(member, header);
    FrameHeader fenced{.type = static_cast<FrameType>(ServerFrame::kFenced)};
    fenced.incarnation = header.incarnation;
    ports.send(connection, fenced, {}, Kept::kCopy);
    return;
  }
  if (member.connection && member.connection != connection) {
    forget(*member.connection, "replaced by a new connection");
  }
  stay();
  welcomed = true;
  if (member.presence == Presence::kAwaited) comes_back(member, header);
  if (member.presence != Presence::kLeft) member.presence = Presence::kPresent;
  if (member.worker == 0 && member.live()) first_gone_at.reset();
  member.was_present = true;
  member.returned = true;
  member.replay_to = header.sequence;
  member.replayed_at = now;
  member.connection = connection;
  member.last_heard = now;
  member.asks_about = 0;
  member.pull.reset();
  member.reading.reset();
  if (!member.push.whole) member.push.clear();
  member.push.gradients.resize(static_cast<std::size_t>(spec->size));
  connections.at(connection).joined = true;
  send_joined(member);
  examine_losses();
  examine_rounds();
  examine_pulls();
}

// Either the worker was restarted, or its rank was started twice; the old connection shows which,
// by whether anything more is heard of it.
void ParameterServer::State::hold_or_join(ConnectionId connection, Member& member) {
  // One that has left may not have got its goodbye yet.
  const bool there = member.presence == Presence::kPresent || member.presence == Presence::kLeft;
  Connection& own = connections.at(connection);
  // Of a worker that asks several times, the latest is let in.
  const bool later = member.presence == Presence::kJoining && member.connection > connection;
  // One that waits already, waits a little more: the process may be about to connect again.
  const bool alive = there && (member.connection ? now - member.last_heard <= options.evict_after
                                                 : own.held_since && now - member.lost_at <=
                                                                         options.evict_unconnected);
  if (!own.held_since) own.held_since = now;
  if (later) return;
  if (!alive) {
    // A process that is stopped gets no place that another one, which is awake, would have to lose.
    if (now - own.last_heard > options.evict_after / 2) return;
    own.held_since.reset();
    return join_anew(connection, member);
  }
  const bool clear = now - *own.held_since > options.evict_after * 3 / 2;
  if (clear && now - member.last_heard <= options.evict_after / 2) {
    refuse(connection, named(member.worker) + " is already there");
  }
}

void ParameterServer::State::examine_held() {
  std::vector<ConnectionId> held;
  for (const auto& [id, connection] : connections) {
    if (connection.held_since) held.push_back(id);
  }
  std::sort(held.rbegin(), held.rend());  // the latest first
  for (const ConnectionId id : held) {
    const auto found = connections.find(id);
    if (found == connections.end()) continue;
    Member& member = members->at(found->second.worker);
    const bool taken = member.presence == Presence::kJoining && member.connection;
    if (!taken) hold_or_join(id, member);
  }
}

void ParameterServer::State::join_anew(ConnectionId connection, Member& member) {
  if (member.connection && member.connection != connection) {
    forget(*member.connection, "replaced by a new process");
  }
  does_not_repeat(member);
  member.renew(member.incarnation + 1);
  stay();
  member.presence = Presence::kJoining;
  examine_losses();
  member.asks_about = connections.at(connection).held_before;
  member.connection = connection;
  member.last_heard = now;
  member.clock = members->min_clock(member.worker).value_or(member.clock);
  changed = true;
  if (options.keeps_state) {
    // Told only when it cannot be forgotten: no incarnation is given twice, and what the worker
    // has to repeat after a crash is never of an older one.
    member.joins_with = request_snapshot();
  } else {
    activate(member);
  }
  examine_rounds();
  examine_pulls();
}

void ParameterServer::State::stay() {
  gone_since.reset();
  ending.reset();
  finished.reset();
}

void ParameterServer::State::activate(Member& member) {
  if (!member.connection) {
    member.presence = member.was_present ? Presence::kEvicted : Presence::kNever;
    return;
  }
  member.clock = members->min_clock(member.worker).value_or(member.clock);
  member.presence = Presence::kPresent;
  if (member.worker == 0) first_gone_at.reset();
  member.was_present = welcomed = true;
  member.push.gradients.resize(static_cast<std::size_t>(spec->size));
  connections.at(*member.connection).joined = true;
  log(named(member.worker) + " has joined (incarnation " + std::to_string(member.incarnation) +
      "); " + text());
  send_joined(member);
}

void ParameterServer::State::send_joined(const Member& member) {
  JoinedBody body{.incarnation = member.incarnation,
                  .lineage = lineage,
                  .applied = member.applied,
                  .durable = member.durable,
                  .version = model->version(),
                  .progress = member.progress,
                  .initialized = initialized || initialization.whole,
                  .keeps_state = options.keeps_state,
                  .applied_before = 0,
                  .in_model_before = false};
  for (const PastIncarnation& past : member.past) {
    if (past.incarnation != member.asks_about) continue;
    body.applied_before = past.applied;
    body.in_model_before = past.in_model;
  }
  send(member, ServerFrame::kJoined, {}, encode(body));
  if (initialized && finished_training()) send(member, ServerFrame::kFinished);
}

// Where a frame of initial values belongs; nothing where it is not the next one.
std::span<float> ParameterServer::State::initial_place(const Member& member,
                                                       const FrameHeader& header,
                                                       std::size_t bytes) {
  if (member.worker != 0 || initialized || initialization.whole) return {};
  if (bytes % sizeof(float) != 0 || header.detail > model->slot_count()) return {};
  const auto size = static_cast<std::uint64_t>(spec->size);
  const auto place = static_cast<std::uint64_t>(initialization.place);
  const bool first = header.detail == 0 && header.place == 0;
  const bool next = header.detail == initialization.which && header.place == place;
  const bool next_vector =
      header.detail == initialization.which + 1 && header.place == 0 && place == size;
  if (!first && !next && !next_vector) return {};
  const std::size_t count = bytes / sizeof(float);
  if (header.place > size || count > size - header.place) return {};
  std::span<float> vector =
      header.detail == 0 ? model->parameters() : model->slot(header.detail - 1);
  return vector.subspan(static_cast<std::size_t>(header.place), count);
}

void ParameterServer::State::on_initialize(Member& member, const FrameHeader& header,
                                           std::span<const std::byte> payload) {
  if (initialized || initialization.whole) return;
  const std::span<float> place = initial_place(member, header, payload.size());
  if (place.size_bytes() != payload.size()) {
    throw PeerError(named(member.worker) + " sent initial values that do not fit");
  }
  if (header.detail == 0 && header.place == 0) initialization = {};
  if (!payload.empty() && static_cast<const void*>(place.data()) != payload.data()) {
    std::memcpy(place.data(), payload.data(), payload.size());
  }
  initialization.which = header.detail;
  initialization.place = static_cast<std::int64_t>(header.place + place.size());
  initialization.finite = initialization.finite && all_finite(place);
}

void ParameterServer::State::on_initialized(Member& member, const FrameHeader& header,
                                            std::span<const std::byte> payload) {
  if (initialized || initialization.whole) return;
  const auto last_slot = static_cast<std::uint32_t>(model->slot_count());
  const bool complete = initialization.place == spec->size &&
                        (initialization.which == 0 || initialization.which == last_slot);
  const std::vector<std::uint64_t> counts = decode_counts(payload);
  const auto too_many = [](std::uint64_t count) { return count > kMaxUpdates; };
  if (member.worker != 0 || !complete || too_many(header.sequence) ||
      (!counts.empty() && counts.size() != members->all().size()) ||
      std::any_of(counts.begin(), counts.end(), too_many)) {
    throw PeerError(named(member.worker) + " ended its initial values too early");
  }
  if (!initialization.finite) {
    const ConnectionId connection = *member.connection;
    initialization = {};
    return refuse(connection, "the initial values hold numbers that are not finite");
  }
  if (initialization.which == 0) {
    for (std::size_t i = 0; i < model->slot_count(); ++i) {
      std::fill(model->slot(i).begin(), model->slot(i).end(), 0.0F);
    }
  }
  model->set_version(header.sequence);
  counters.updates = header.sequence;
  counters.pushes = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    members->all()[i].progress = counts[i];
    counters.pushes += counts[i];
  }
  initialization.whole = true;
  changed = true;
  if (options.keeps_state) {
    initialization.needs = request_snapshot();
  } else {
    values_count();
  }
}

void ParameterServer::State::values_count() {
  initialized = true;
  log("the initial values are there, at update " + std::to_string(model->version()));
  if (finished_training()) {
    for (const Member& member : members->all()) send(member, ServerFrame::kFinished);
  }
  examine_rounds();
  examine_pulls();
}

}  // namespace cohort
