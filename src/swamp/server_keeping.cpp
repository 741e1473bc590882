#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "storage/json.h"
#include "swamp/candidate.h"
#include "swamp/registry.h"
#include "swamp/server_state.h"

namespace cohort::swamp {

using nlohmann::json;

namespace {

constexpr int kStateVersion = 1;
constexpr int kMaxStateDepth = 8;
constexpr std::chrono::seconds kRetryPause{1};

json kept(const OfferVerdict& verdict) { return {verdict.sequence, verdict.version, verdict.loss}; }

// Only acceptances are kept: whatever else was judged may be judged again after a crash.
json kept(const SwampMember& member, const std::optional<Decision>& pending) {
  json accepted = json::array();
  for (const auto& [sequence, verdict] : member.verdicts) {
    if (verdict.kind == VerdictKind::kAccepted) accepted.push_back(kept(verdict));
  }
  std::uint64_t own_version = member.own_version;
  if (pending && pending->worker == member.worker && pending->incarnation == member.incarnation) {
    accepted.push_back(kept(pending->verdict));
    own_version = pending->verdict.version;
  }
  json row = membership::to_json(static_cast<const membership::MemberRow&>(member));
  row.update({{"own-version", own_version}, {"accepted", accepted}});
  return row;
}

void read_member(const json& object, SwampMember& member) {
  membership::read_row(object, member);
  member.own_version = object.at("own-version").get<std::uint64_t>();
  for (const json& each : object.at("accepted")) {
    OfferVerdict verdict;
    verdict.kind = VerdictKind::kAccepted;
    verdict.sequence = each.at(0).get<std::uint64_t>();
    verdict.version = each.at(1).get<std::uint64_t>();
    verdict.loss = each.at(2).get<double>();
    member.verdicts[verdict.sequence] = verdict;
  }
}

// Without model and losses, which are tensors.
json kept(const BestRecord& best) {
  if (best.version == 0) return nullptr;
  return {{"version", best.version},
          {"claim", best.claim},
          {"loss", best.loss},
          {"score", best.score},
          {"draws", best.draws}};
}

BestRecord read_best(const json& object, const SwampSnapshot& snapshot) {
  if (object.is_null()) return {};
  BestRecord best;
  best.version = object.at("version").get<std::uint64_t>();
  best.claim = object.at("claim").get<double>();
  best.loss = object.at("loss").get<double>();
  best.score = object.at("score").get<double>();
  best.draws = object.at("draws").get<std::uint64_t>();
  best.model = snapshot.model;
  best.losses = snapshot.losses;
  if (best.version == 0 || !best.model) {
    throw FileError("a best-model server's state does not say which model is the best");
  }
  return best;
}

void require_sound(const SwampSnapshot& snapshot, const SwampSpec& spec) {
  const auto finite = [](float value) { return std::isfinite(value); };
  const bool sound = snapshot.model &&
                     static_cast<std::int64_t>(snapshot.model->size()) == spec.values &&
                     std::all_of(snapshot.model->begin(), snapshot.model->end(), finite) &&
                     std::all_of(snapshot.losses.begin(), snapshot.losses.end(), finite);
  if (!sound) throw FileError("a best-model server's state does not fit its model, or is damaged");
}

}  // namespace

const BestRecord& BestModelServer::State::record_to_keep() const {
  return pending ? *pending->judgement.best : policy->best();
}

void BestModelServer::State::make_snapshot(std::uint64_t id) {
  const BestRecord& best = record_to_keep();
  SwampSnapshot snapshot{
      .id = id, .state = state_text(), .model = best.model, .losses = best.losses};
  if (!snapshot.model && initial.whole) snapshot.model = initial.values;
  ports.persist(std::move(snapshot));
}

std::string BestModelServer::State::state_text() const {
  std::optional<Decision> decision;
  if (pending) decision = pending->judgement.decision;
  json rows = json::array();
  for (const Member& member : members) rows.push_back(kept(member, decision));
  return json{{"format", kStateVersion},        {"lineage", lineage},
              {"spec", swamp::to_json(*spec)},  {"initialized", initialized || initial.whole},
              {"best", kept(record_to_keep())}, {"members", rows}}
      .dump();
}

void BestModelServer::State::restore(const SwampSnapshot& snapshot) {
  try {
    const json state = storage::parse_json(snapshot.state, kMaxStateDepth);
    if (state.at("format").get<int>() != kStateVersion) {
      throw FileError("a best-model server's state is of another version of this program");
    }
    spec = std::make_unique<SwampSpec>(swamp_spec_from(state.at("spec").dump()));
    spec_text = swamp::to_json(*spec).dump();
    lineage = state.at("lineage").get<std::uint64_t>();
    initialized = state.at("initialized").get<bool>();
    if (initialized) require_sound(snapshot, *spec);
    BestRecord best = read_best(state.at("best"), snapshot);
    counters.accepted = best.version;
    if (initialized && !best.model) {
      initial.values = std::make_shared<std::vector<float>>(*snapshot.model);
      initial.whole = true;
    }
    PolicyOptions options = settings.policy;
    options.hysteresis = spec->hysteresis;
    policy = swamp_policies().make(spec->policy, options, std::move(best));
    open_roster();
    if (state.at("members").size() != members.size()) {
      throw FileError("a best-model server's state does not name every worker once");
    }
    for (std::size_t i = 0; i < members.size(); ++i) {
      read_member(state.at("members").at(i), members[i]);
    }
  } catch (const json::exception& error) {
    throw FileError(std::string("a best-model server's state is damaged: ") + error.what());
  } catch (const PeerError& error) {
    throw FileError(std::string("a best-model server's state is damaged: ") + error.what());
  }
  snapshots.go_on_from(snapshot.id);
  job_is_kept = true;
}

void BestModelServer::on_persisted(std::uint64_t id, Deadline now) {
  State& state = *state_;
  state.roster.note_time(now);
  if (!state.snapshots.written(id)) return;
  state.job_is_kept = true;
  state.roster.on_persisted(id);
  if (!state.initialized && state.initial.whole && state.initial.needs <= id) {
    state.initial_counts();
  }
  if (state.pending && state.pending->needs <= id) {
    const Judgement judgement = std::move(state.pending->judgement);
    state.commit(judgement);
  }
  if (state.snapshots.writing()) return;  // what was committed has begun the next one
  if (state.snapshots.wanted()) {
    state.request_snapshot();
  } else {
    state.roster.last_snapshot_done("");
  }
}

void BestModelServer::on_persist_failed(std::uint64_t id, const std::string& why, Deadline now) {
  State& state = *state_;
  state.roster.note_time(now);
  const auto retry_at = now + std::chrono::duration_cast<Clock::duration>(kRetryPause);
  if (!state.snapshots.failed(id, retry_at)) return;
  ++state.counters.persist_failures;
  state.log("the state could not be written, and is tried again: " + why);
  if (state.pending && state.pending->needs <= id) {
    // The one that is tried next holds it.
    state.pending->needs = id + 1;
    if (++state.pending->tries >= state.settings.persist_tries) {
      const Candidate candidate = *state.examining;
      state.commit(refusal(candidate, state.policy->best().version,
                           "it could not be written to disk: " + why));
    }
  }
  if (state.initial.whole && !state.initialized && state.initial.needs <= id) {
    state.initial.needs = id + 1;
  }
  state.roster.last_snapshot_done(why);
}

}  // namespace cohort::swamp
