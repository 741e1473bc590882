#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "server/server_state.h"
#include "server/wire_format.h"
#include "storage/json.h"

namespace cohort::server {

using nlohmann::json;

namespace {

constexpr int kStateVersion = 1;
constexpr int kMaxStateDepth = 8;

json to_json(const Member& member) {
  json past = json::array();
  for (const PastIncarnation& each : member.past) {
    past.push_back({each.incarnation, each.applied, each.in_model});
  }
  json row = membership::to_json(static_cast<const membership::MemberRow&>(member));
  row.update({{"applied", member.applied},
              {"progress", member.progress},
              {"clock", member.clock},
              {"past", past},
              {"answer",
               {{"kind", static_cast<int>(member.answer.kind)},
                {"staleness", member.answer.staleness},
                {"workers", member.answer.workers},
                {"reason", member.answer.reason}}}});
  return row;
}

void read_member(const json& object, Member& member) {
  membership::read_row(object, member);
  const int kind = object.at("answer").at("kind").get<int>();
  if (kind < 0 || kind > static_cast<int>(PushAnswer::Kind::kRejected)) {
    throw FileError("a server's state holds an unknown value");
  }
  member.applied = object.at("applied").get<std::uint64_t>();
  member.durable = member.applied;
  member.progress = object.at("progress").get<std::uint64_t>();
  member.clock = object.at("clock").get<std::uint64_t>();
  for (const json& each : object.at("past")) {
    member.past.push_back({.incarnation = each.at(0).get<std::uint64_t>(),
                           .applied = each.at(1).get<std::uint64_t>(),
                           .in_model = each.at(2).get<bool>()});
  }
  member.answer.kind = static_cast<PushAnswer::Kind>(kind);
  member.answer.staleness = object.at("answer").at("staleness").get<std::uint64_t>();
  member.answer.workers = object.at("answer").at("workers").get<std::vector<Rank>>();
  member.answer.reason = object.at("answer").at("reason").get<std::string>();
}

json to_json(const ServerCounters& counters) {
  json staleness = json::array();
  for (const auto& [age, pushes] : counters.staleness) staleness.push_back({age, pushes});
  return {{"updates", counters.updates}, {"speculative", counters.speculative},
          {"pushes", counters.pushes},   {"duplicates", counters.duplicates},
          {"dropped", counters.dropped}, {"rejected", counters.rejected},
          {"fenced", counters.fenced},   {"evictions", counters.evictions},
          {"lost", counters.lost},       {"unaccounted", counters.unaccounted},
          {"staleness", staleness}};
}

ServerCounters counters_from(const json& object) {
  ServerCounters counters;
  counters.updates = object.at("updates").get<std::uint64_t>();
  counters.speculative = object.value("speculative", std::uint64_t{0});  // not in older ones
  counters.pushes = object.at("pushes").get<std::uint64_t>();
  counters.duplicates = object.at("duplicates").get<std::uint64_t>();
  counters.dropped = object.at("dropped").get<std::uint64_t>();
  counters.rejected = object.at("rejected").get<std::uint64_t>();
  counters.fenced = object.at("fenced").get<std::uint64_t>();
  counters.evictions = object.at("evictions").get<std::uint64_t>();
  counters.lost = object.at("lost").get<std::uint64_t>();
  counters.unaccounted = object.value("unaccounted", std::uint64_t{0});
  for (const json& pair : object.at("staleness")) {
    counters.staleness[pair.at(0).get<std::uint64_t>()] = pair.at(1).get<std::uint64_t>();
  }
  return counters;
}

void restore_values(const ServerSnapshot& snapshot, ModelState& model) {
  const auto fits = [&](const std::vector<float>& values) {
    return values.size() == model.parameters().size() && all_finite(values);
  };
  const bool sound = fits(snapshot.parameters) && snapshot.slots.size() == model.slot_count() &&
                     std::all_of(snapshot.slots.begin(), snapshot.slots.end(), fits);
  if (!sound) throw FileError("a server's state does not fit its parameters, or is damaged");
  std::copy(snapshot.parameters.begin(), snapshot.parameters.end(), model.parameters().begin());
  for (std::size_t i = 0; i < snapshot.slots.size(); ++i) {
    std::copy(snapshot.slots[i].begin(), snapshot.slots[i].end(), model.slot(i).begin());
  }
}

}  // namespace

void ParameterServer::State::make_snapshot(std::uint64_t id) {
  ServerSnapshot snapshot{.id = id, .state = state_text(), .parameters = {}, .slots = {}};
  if (initialized || initialization.whole) {
    materialize();
    const std::span<const float> values = model->parameters();
    snapshot.parameters.assign(values.begin(), values.end());
    for (std::size_t i = 0; i < model->slot_count(); ++i) {
      snapshot.slots.emplace_back(model->slot(i).begin(), model->slot(i).end());
    }
  }
  persisting.clear();
  for (const Member& member : members->all()) {
    persisting.push_back({.incarnation = member.incarnation, .applied = member.applied});
  }
  ports.persist(std::move(snapshot));
}

std::string ParameterServer::State::state_text() const {
  json rows = json::array();
  for (const Member& member : members->all()) rows.push_back(to_json(member));
  ServerCounters counted = counters;
  if (loss) counted.unaccounted += loss->workers.size();  // it ends with this server, if that dies
  const json state = {{"format", kStateVersion},
                      {"server", options.server},
                      {"lineage", lineage},
                      {"initialized", initialized || initialization.whole},
                      {"version", model->version()},
                      {"skipped", skipped},
                      {"gone-back", gone_back},
                      {"inferred-lost", inferred_lost},
                      {"members", rows},
                      {"counters", to_json(counted)}};
  // The specification is the larger part, and never changes.
  return "{\"spec\":" + spec_text + "," + state.dump().substr(1);
}

void ParameterServer::State::restore(const ServerSnapshot& snapshot) {
  try {
    const json state = storage::parse_json(snapshot.state, kMaxStateDepth);
    if (state.at("format").get<int>() != kStateVersion) {
      throw FileError("a server's state is of another version of this program");
    }
    if (state.at("server").get<int>() != options.server) {
      throw FileError("this is the state of server " + state.at("server").dump() +
                      ", not of server " + std::to_string(options.server));
    }
    spec = std::make_unique<JobSpec>(job_spec_from(state.at("spec").dump()));
    spec_text = server::to_json(*spec).dump();
    model.emplace(*spec);
    members.emplace(spec->workers);
    // Workers forgot what an older snapshot lacks when the newest was on disk, and incarnations
    // were given out since: this is another job to all who know of the newer one.
    fell_back = !snapshot.newest;
    if (!fell_back) lineage = state.at("lineage").get<std::uint64_t>();
    initialized = state.at("initialized").get<bool>();
    model->set_version(state.at("version").get<std::uint64_t>());
    skipped = state.value("skipped", std::uint64_t{0});
    gone_back = state.value("gone-back", false);
    inferred_lost = state.value("inferred-lost", std::uint64_t{0});
    if (state.at("members").size() != members->all().size()) {
      throw FileError("a server's state does not name every worker once");
    }
    for (Member& member : members->all()) {
      read_member(state.at("members").at(static_cast<std::size_t>(member.worker)), member);
    }
    counters = counters_from(state.at("counters"));
    if (initialized) restore_values(snapshot, *model);
  } catch (const json::exception& error) {
    throw FileError(std::string("a server's state is damaged: ") + error.what());
  } catch (const PeerError& error) {
    throw FileError(std::string("a server's state is damaged: ") + error.what());
  }
  roster.open(members->rows());
  restored = true;
  if (initialized) {
    loss = Loss{.accounted = model->version() + counters.lost, .seen = 0, .workers = {}};
  }
  snapshots.go_on_from(snapshot.id);
  recovering = spec->mode == ServerMode::kSync && initialized && !finished_training();
}

void ParameterServer::State::move_watermarks(const std::vector<Persisting>& written) {
  for (Member& member : members->all()) {
    const Persisting& row = written[static_cast<std::size_t>(member.worker)];
    if (row.incarnation != member.incarnation || row.applied <= member.durable) continue;
    member.durable = row.applied;
    network::FrameHeader header;
    header.place = member.durable;
    if (member.presence == Member::Presence::kPresent) send(member, ServerFrame::kDurable, header);
  }
}

void ParameterServer::on_persisted(std::uint64_t id, Deadline now) {
  State& state = *state_;
  state.roster.note_time(now);
  if (!state.snapshots.written(id)) return;
  state.move_watermarks(state.persisting);
  state.roster.on_persisted(id);
  const State::Initialization& initial = state.initialization;
  if (!state.initialized && initial.whole && initial.needs <= id) state.values_count();
  if (state.snapshots.wanted()) {
    state.request_snapshot();
  } else {
    state.roster.last_snapshot_done("");
  }
}

void ParameterServer::on_persist_failed(std::uint64_t id, const std::string& why, Deadline now) {
  State& state = *state_;
  state.roster.note_time(now);
  // Workers may be waiting for it: not only at the next interval.
  const std::chrono::nanoseconds pause =
      std::min<std::chrono::nanoseconds>(state.options.snapshot_every, std::chrono::seconds(1));
  if (!state.snapshots.failed(id, now + std::chrono::duration_cast<Clock::duration>(pause))) return;
  ++state.counters.persist_failures;
  state.log("the state could not be written, and is tried again: " + why);
  state.roster.last_snapshot_done(why);
}

}  // namespace cohort::server
