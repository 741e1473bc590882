#include <algorithm>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "server/numbers.h"
#include "server/server_state.h"
#include "server/wire_format.h"

namespace cohort::server {

namespace {

constexpr std::uint64_t kMaxUpdates = std::uint64_t{1} << 53;

}  // namespace

void ParameterServer::State::on_join(membership::ConnectionId connection,
                                     const network::FrameHeader& header,
                                     std::span<const std::byte> payload) {
  auto asked = roster.asked(connection, payload);
  if (!asked) return;
  auto& [worker, request] = *asked;
  if (restarts.count(connection) == 1)
    throw PeerError(membership::named(worker) + " asked twice to join");
  if (request.kind == membership::JoinKind::kGoBack)
    return go_back(connection, worker, header, request);
  if (request.lineage != 0 && request.lineage != lineage) {
    return roster.refuse(connection, lost_state_text());
  }
  if (request.kind == membership::JoinKind::kCheckpoint && request.lineage == 0 && spec) {
    return hold_restart(connection, worker, header, std::move(request));
  }
  join(connection, worker, header, request);
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

void ParameterServer::State::join(membership::ConnectionId connection, Rank worker,
                                  const network::FrameHeader& header,
                                  const membership::JoinRequest& request) {
  if (!accept_spec(connection, worker, request.job)) return;
  Member& member = members->at(worker);
  if (request.lineage != 0 && restored) {
    member.replay.holds =
        std::max(member.replay.holds, version_near(model->version(), header.detail));
    if (!recovering) skip_held_versions();
  }
  if (header.incarnation == 0) {
    roster.join_anew(connection, member, header);
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
    return "there is no " + membership::named(worker) + " in a job of " +
           std::to_string(given.workers);
  }
  return differences_from_told(options.told, given);
}

bool ParameterServer::State::accept_spec(membership::ConnectionId connection, Rank worker,
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
      spec_text = server::to_json(*spec).dump();
      roster.open(members->rows());
    }
  } catch (const std::bad_alloc&) {
    wrong = "server " + std::to_string(options.server) + " has not enough memory for its share";
  }
  if (wrong.empty()) return true;
  if (!spec) model.reset();
  roster.refuse(connection, wrong);
  return false;
}

// The connection is new, the worker is not.
void ParameterServer::State::return_with(membership::ConnectionId connection, Member& member,
                                         const network::FrameHeader& header) {
  const bool awaited = member.presence == Member::Presence::kAwaited;
  if (!roster.return_with(connection, member, header)) return count_lost(member, header);
  if (awaited) comes_back(member, header);
  if (member.worker == 0 && member.live()) first_gone_at.reset();
  member.replay.returned = true;
  member.replay.to = header.sequence;
  member.replay.since = roster.now();
  member.disconnect();  // from what it had asked for
  member.push.gradients.resize(static_cast<std::size_t>(spec->size));
  send_joined(member);
  examine_losses();
  examine_rounds();
  examine_pulls();
}

// Told only when it cannot be forgotten: no incarnation is given twice, and what the worker has to
// repeat after a crash is never of an older one.
std::uint64_t ParameterServer::State::joining(membership::MemberRow& row, std::uint64_t former) {
  Member& member = members->at(row.worker);
  member.renew(former);
  member.clock = members->min_clock(member.worker).value_or(member.clock);
  snapshots.changes();
  examine_losses();
  const std::uint64_t needs = options.keeps_state ? request_snapshot() : 0;
  examine_rounds();
  examine_pulls();
  return needs;
}

void ParameterServer::State::joined(membership::MemberRow& row) {
  Member& member = members->at(row.worker);
  member.clock = members->min_clock(member.worker).value_or(member.clock);
  if (member.worker == 0) first_gone_at.reset();
  member.push.gradients.resize(static_cast<std::size_t>(spec->size));
  send_joined(member);
  examine_rounds();
  examine_pulls();
}

void ParameterServer::State::send_joined(const Member& member) {
  JoinedBody body{.applied = member.applied,
                  .durable = member.durable,
                  .version = model->version(),
                  .progress = member.progress,
                  .initialized = initialized || initialization.whole,
                  .keeps_state = options.keeps_state,
                  .applied_before = 0,
                  .in_model_before = false};
  for (const PastIncarnation& past : member.past) {
    if (past.incarnation != member.before) continue;
    body.applied_before = past.applied;
    body.in_model_before = past.in_model;
  }
  network::FrameHeader header{
      .type = static_cast<network::FrameType>(membership::MemberFrame::kJoined)};
  header.incarnation = member.incarnation;
  const Bytes payload = membership::encode_joined(lineage, encode(body));
  header.length = static_cast<std::uint32_t>(payload.size());
  ports.send(*member.connection, header, payload, network::Kept::kCopy);
  if (initialized && finished_training()) send(member, ServerFrame::kFinished);
}

// Where a frame of initial values belongs; nothing where it is not the next one.
std::span<float> ParameterServer::State::initial_place(const Member& member,
                                                       const network::FrameHeader& header,
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

void ParameterServer::State::on_initialize(Member& member, const network::FrameHeader& header,
                                           std::span<const std::byte> payload) {
  if (initialized || initialization.whole) return;
  const std::span<float> place = initial_place(member, header, payload.size());
  if (place.size_bytes() != payload.size()) {
    throw PeerError(membership::named(member.worker) + " sent initial values that do not fit");
  }
  if (header.detail == 0 && header.place == 0) initialization = {};
  if (!payload.empty() && static_cast<const void*>(place.data()) != payload.data()) {
    std::memcpy(place.data(), payload.data(), payload.size());
  }
  initialization.which = header.detail;
  initialization.place = static_cast<std::int64_t>(header.place + place.size());
  initialization.finite = initialization.finite && all_finite(place);
}

void ParameterServer::State::on_initialized(Member& member, const network::FrameHeader& header,
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
    throw PeerError(membership::named(member.worker) + " ended its initial values too early");
  }
  if (!initialization.finite) {
    const membership::ConnectionId connection = *member.connection;
    initialization = {};
    return roster.refuse(connection, "the initial values hold numbers that are not finite");
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
  snapshots.changes();
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

}  // namespace cohort::server
