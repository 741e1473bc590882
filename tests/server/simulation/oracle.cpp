#include "simulation/oracle.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "simulation/index.h"

namespace cohort::server::simulation {
namespace {

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// After it was heard of last, as protocol.md says.
constexpr cohort::simulation::Time kComesBackWithin = 10 * cohort::simulation::kSecond;

}  // namespace

std::string push_text(Rank rank, int push) {
  return "push " + std::to_string(push) + " of worker " + std::to_string(rank);
}

const char* to_text(Breach breach) {
  switch (breach) {
    case Breach::kLost:
      return "accepted but lost";
    case Breach::kTwice:
      return "applied twice";
    case Breach::kGap:
      return "gap over the staleness";
    case Breach::kStuck:
      return "stuck";
    case Breach::kFence:
      return "fencing";
    case Breach::kDiverged:
      return "diverged";
    case Breach::kTorn:
      return "torn";
    case Breach::kOther:
      return "other";
  }
  return "?";
}

Oracle::Oracle(Seed seed, const Swarm& swarm) : seed_(seed), swarm_(swarm) {}

void Oracle::fail(Breach breach, const std::string& text) const { throw Violation(breach, text); }

void Oracle::server_started(const ServerSnapshot* durable, std::uint64_t version,
                            cohort::simulation::Time now) {
  ++boot_;
  started_at_.push_back(now);
  serving_ = boot_ == 0;
  under_way_ = false;
  version_ = version;
  known_ = durable != nullptr && !durable->parameters.empty();
  const Digits before = digits_;
  digits_ = {};
  promises_.clear();
  issued_in_boot_ = {};
  snapshots_.clear();
  model_.clear();
  if (known_) {
    model_ = durable->parameters;
    shared_ = model_[0];
    if (!read_digits(swarm_.workers, model_, digits_)) {
      fail(Breach::kTorn, "the snapshot that the server starts from is no model");
    }
    history_[{boot_, version}].push_back(model_);
  }
  durable_digits_ = digits_;
  clocks_ = durable != nullptr ? durable_clocks_ : Clocks{};
  for (Rank rank = 0; rank < swarm_.workers; ++rank) {
    for (int push = 0; push < kMaxPushes; ++push) {
      Push& each = pushes_[at(rank)][at(push)];
      const bool was_in = each.told == Told::kApplied || before[at(rank)][at(push)] != 0;
      if (was_in && digits_[at(rank)][at(push)] == 0) each.vanished_in = boot_;
    }
  }
  for (Process& process : processes_) {
    process.heard = now;
    process.silent = false;
  }
}

// What is lost with the server is at most what came since the last snapshot, and those are made
// when they are due: one may be waiting for another to be written.
void Oracle::server_died(cohort::simulation::Time now) {
  if (swarm_.persist_fails > 0 || swarm_.every[kServerPause] > 0) return;
  const cohort::simulation::Time at_most =
      swarm_.snapshot_every + 2 * longest_write_ + 300 * cohort::simulation::kMillisecond;
  for (Rank rank = 0; rank < swarm_.workers; ++rank) {
    for (int push = 0; push < kMaxPushes; ++push) {
      if (digits_[at(rank)][at(push)] == 0 || durable_digits_[at(rank)][at(push)] != 0) continue;
      if (now - pushes_[at(rank)][at(push)].applied_at > at_most) {
        fail(Breach::kLost, push_text(rank, push) + " waits for a snapshot longer than promised");
      }
    }
  }
}

void Oracle::snapshot_takes(cohort::simulation::Time time) {
  longest_write_ = std::max(longest_write_, time);
}

void Oracle::snapshot_made(const ServerSnapshot& snapshot) {
  if (!snapshot.parameters.empty() && known_ && !same_bits(snapshot.parameters, model_)) {
    fail(Breach::kTorn, "a snapshot holds other values than the model");
  }
  snapshots_[snapshot.id] = {digits_, clocks_.kept()};
}

void Oracle::snapshot_kept(std::uint64_t id) {
  const auto found = snapshots_.find(id);
  if (found != snapshots_.end()) {
    durable_digits_ = found->second.digits;
    durable_clocks_ = found->second.clocks;
  }
}

void Oracle::model_seen(std::uint64_t version, std::span<const float> parameters,
                        cohort::simulation::Time now) {
  if (parameters.empty() || (known_ && version == version_)) {
    if (known_ && !same_bits(parameters, model_)) {
      fail(Breach::kTorn, "the model changed and its version did not");
    }
    return;
  }
  if (!known_) {
    // Before the initial values are there, zeros are nobody's business.
    if (!begin(version, parameters, now)) return;
    if (version == version_) return;
  }
  commit(version, parameters, now);
}

void Oracle::values_brought(const Checkpoint& values) {
  const auto same = [&](const Checkpoint& each) {
    return each.version == values.version && same_bits(each.values, values.values);
  };
  if (std::none_of(brought_.begin(), brought_.end(), same)) brought_.push_back(values);
}

// Whether that is a model that somebody has brought, and may have been changed once since.
bool Oracle::begin(std::uint64_t version, std::span<const float> parameters,
                   cohort::simulation::Time now) {
  auto found = std::find_if(brought_.begin(), brought_.end(), [&](const Checkpoint& each) {
    return each.version == version && same_bits(each.values, parameters);
  });
  if (found == brought_.end() && version > 0) {
    found = std::find_if(brought_.begin(), brought_.end(),
                         [&](const Checkpoint& each) { return each.version + 1 == version; });
  }
  if (found == brought_.end()) return false;
  known_ = true;
  ++beginnings_;
  version_ = found->version;
  model_ = found->values;
  shared_ = model_[0];
  read_digits(swarm_.workers, model_, digits_);
  history_[{boot_, version_}].push_back(model_);
  for (Rank rank = 0; rank < swarm_.workers; ++rank) {
    for (int push = 0; push < kMaxPushes; ++push) {
      if (digits_[at(rank)][at(push)] == 0) continue;
      // Whatever became of it afterwards, it is in this model.
      Push& each = pushes_[at(rank)][at(push)];
      each.told = Told::kNothing;
      each.refused = false;
      each.applied_at = now;
    }
  }
  return true;
}

// Whoever was heard of a short time ago may be about to come back, if only it lives and no other
// process comes in its place.
void Oracle::check_beneath(cohort::simulation::Time now) const {
  for (const Process& process : processes_) {
    const bool current = process.incarnation != 0 && process.joined_life == life_ &&
                         process.incarnation == issued_[at(process.rank)];
    if (!process.alive || process.left || !current || clocks_.asked_for(process.rank)) continue;
    if (now - process.heard >= kComesBackWithin) continue;
    fail(Breach::kOther, "the job goes back to its checkpoint beneath worker " +
                             std::to_string(process.rank) + ", which may be about to come back");
  }
}

void Oracle::job_forgotten(cohort::simulation::Time now) {
  check_beneath(now);
  under_way_ = false;
  ++life_;
  known_ = false;
  for (Rank rank = 0; rank < swarm_.workers; ++rank) {
    for (int push = 0; push < kMaxPushes; ++push) {
      Push& each = pushes_[at(rank)][at(push)];
      if (each.told == Told::kApplied || digits_[at(rank)][at(push)] != 0) each.vanished_in = boot_;
    }
  }
  digits_ = {};
  durable_digits_ = {};
  model_.clear();
  promises_.clear();
  issued_in_boot_ = {};
  seen_.clear();
  clocks_.begin_again();
}

void Oracle::commit(std::uint64_t version, std::span<const float> parameters,
                    cohort::simulation::Time now) {
  if (same_bits(parameters, model_)) {  // rounds that nobody can repeat are skipped
    // ... or had been pulled by somebody, so that their numbers are used up.
    const bool pulled = version > 0 && seen_.lower_bound(version - 1) != seen_.end();
    if (boot_ == 0 || swarm_.mode != ServerMode::kSync || version < version_ ||
        (!lossy() && !pulled)) {
      fail(Breach::kOther, "the version changed and the model did not");
    }
    version_ = version;
    history_[{boot_, version}].push_back(model_);
    made_at_[{boot_, version}] = now;
    return;
  }
  if (version != version_ + 1) {
    fail(Breach::kOther,
         "the version goes from " + std::to_string(version_) + " to " + std::to_string(version));
  }
  Digits digits = {};
  if (!read_digits(swarm_.workers, parameters, digits)) {
    fail(Breach::kTwice, "the model is no sum of pushes");
  }
  std::vector<std::pair<Rank, int>> added;
  for (Rank rank = 0; rank < swarm_.workers; ++rank) {
    for (int push = 0; push < kMaxPushes; ++push) {
      const int before = digits_[at(rank)][at(push)];
      const int after = digits[at(rank)][at(push)];
      if (before == after) continue;
      if (before != 0) fail(Breach::kTwice, push_text(rank, push) + " is in the model again");
      added.emplace_back(rank, push);
    }
  }
  const int share = added.empty() ? 0 : kUnit / static_cast<int>(added.size());
  float sum = 0;
  for (const auto& [rank, push] : added) {
    if (digits[at(rank)][at(push)] != share) {
      fail(Breach::kTwice,
           push_text(rank, push) + " counts " + std::to_string(digits[at(rank)][at(push)]) +
               " of " + std::to_string(kUnit) + " in a round of " + std::to_string(added.size()));
    }
    sum += fraction(seed_, rank, push);
    pushes_[at(rank)][at(push)].applied_at = now;
  }
  digits_ = digits;
  check_round(added, now);
  if (!added.empty()) {
    shared_ -= static_cast<float>(1.0 / static_cast<double>(added.size())) * sum;
  }
  if (std::memcmp(&shared_, &parameters[0], sizeof shared_) != 0) {
    fail(Breach::kDiverged, "version " + std::to_string(version) +
                                " is not the sum of its gradients in the order of ranks");
  }
  version_ = version;
  model_.assign(parameters.begin(), parameters.end());
  history_[{boot_, version}].push_back(model_);
  made_at_[{boot_, version}] = now;
}

void Oracle::check_round(const std::vector<std::pair<Rank, int>>& added,
                         cohort::simulation::Time now) {
  std::array<bool, kMaxWorkers> in = {};
  for (const auto& [rank, push] : added) {
    if (in[at(rank)]) fail(Breach::kTwice, "a round with two pushes of one worker");
    in[at(rank)] = true;
    const Push& each = pushes_[at(rank)][at(push)];
    if (each.poisoned) fail(Breach::kOther, push_text(rank, push) + ", a NaN, is in the model");
    // What another server refused, and nobody heard, this one may take.
    if (each.told == Told::kNotApplied || (each.refused && each.refused_in == boot_)) {
      fail(Breach::kFence, push_text(rank, push) + " is in the model and was said to be in none");
    }
    if (each.incarnation < issued_in_boot_[at(rank)]) {
      fail(Breach::kFence, push_text(rank, push) + " of incarnation " +
                               std::to_string(each.incarnation) + " came in after " +
                               std::to_string(issued_in_boot_[at(rank)]) + " was given out");
    }
  }
  if (swarm_.mode != ServerMode::kSync) {
    if (added.size() != 1) fail(Breach::kOther, "an update that is not of one push");
    return;
  }
  // After a restart rounds are repeated as they were, whoever is there by now. Values are sent only
  // when that is over.
  if (!serving_ && repeated(added)) return;
  std::size_t there = added.size();
  Rank missing = -1;
  for (const Process& process : processes_) {
    if (is_member(process, now) && !clocks_.done(process.rank) &&
        !clocks_.rejoining(process.rank) && !in[at(process.rank)]) {
      in[at(process.rank)] = true;
      missing = process.rank;
      ++there;
    }
  }
  const auto enough = static_cast<std::size_t>(swarm_.workers - swarm_.backup_workers);
  if (added.size() < std::min(there, enough)) {
    fail(Breach::kDiverged,
         "a round without worker " + std::to_string(missing) + ", which is there");
  }
}

bool Oracle::repeated(const std::vector<std::pair<Rank, int>>& added) const {
  return boot_ > 0 && std::any_of(added.begin(), added.end(), [&](const auto& each) {
           return pushes_[at(each.first)][at(each.second)].first_boot < boot_;
         });
}

void Oracle::process_started(int process, Rank rank) {
  processes_.resize(std::max(processes_.size(), at(process) + 1));
  processes_[at(process)].rank = rank;
}

void Oracle::process_died(int process) { processes_[at(process)].alive = false; }

void Oracle::process_hindered(int process, cohort::simulation::Time until) {
  cohort::simulation::Time& last = processes_[at(process)].hindered_until;
  last = std::max(last, until);
}

void Oracle::push_begun(int process, int push, bool poisoned) {
  Push& each = pushes_[at(processes_[at(process)].rank)][at(push)];
  each.process = process;
  each.poisoned = poisoned;
}

void Oracle::push_ended(int process, int push, const PushOutcome& outcome) {
  const Rank rank = processes_[at(process)].rank;
  Push& each = pushes_[at(rank)][at(push)];
  switch (outcome.kind) {
    case PushOutcome::Kind::kApplied:
      each.told = Told::kApplied;
      // The server that made the promise may have died before it came.
      if (digits_[at(rank)][at(push)] == 0) each.vanished_in = boot_;
      return;
    case PushOutcome::Kind::kFenced:
      each.told = Told::kFenced;
      return;
    case PushOutcome::Kind::kDropped:
    case PushOutcome::Kind::kRejected:
      each.told = Told::kNotApplied;
      return;
  }
}

void Oracle::values_pulled(int process, int boot, std::uint64_t version,
                           std::span<const float> values) {
  const auto found = history_.find({boot, version});
  const auto same = [&](const std::vector<float>& model) { return same_bits(model, values); };
  if (found == history_.end() || std::none_of(found->second.begin(), found->second.end(), same)) {
    fail(Breach::kTorn, "process " + std::to_string(process) + " pulled values that version " +
                            std::to_string(version) + " never had");
  }
  if (swarm_.mode != ServerMode::kSync || processes_[at(process)].joined_life != life_) return;
  for (const Seen& seen : seen_[version]) {
    if (!same_bits(seen.values, values) && !may_differ(seen, boot, version, values)) {
      fail(Breach::kDiverged, "processes " + std::to_string(seen.process) + " and " +
                                  std::to_string(process) + " pulled version " +
                                  std::to_string(version) + " and got different values");
    }
  }
  seen_[version].push_back({process, boot, {values.begin(), values.end()}});
}

// One number for two models, after a restart: only where the server that made the second could not
// know of the first, or could not make it again.
bool Oracle::may_differ(const Seen& seen, int boot, std::uint64_t version,
                        std::span<const float> values) const {
  // Whoever returns says what it holds, and no number up to that is given out anew. It is waited
  // for, but not for ever, and the dead say nothing.
  const Process& first = processes_[at(seen.process)];
  const auto made = made_at_.find({boot, version});
  const bool told = first.alive && first.joined_boot == boot && made != made_at_.end() &&
                    first.joined_at <= made->second;
  if (!told) return seen.boot != boot;
  // The last update has to be made, so the number before it cannot be passed over.
  const bool before_last = static_cast<std::uint64_t>(swarm_.total_updates) == version + 1;
  if (before_last && seen.boot != boot) return true;
  // A round is repeated without those of its workers that cannot come any more; and again with
  // them, when the server that had given them up is forgotten too: what they were acknowledged has
  // to be in the model.
  Digits then = {};
  Digits now = {};
  if (!read_digits(swarm_.workers, seen.values, then)) return false;
  if (!read_digits(swarm_.workers, values, now)) return false;
  for (Rank rank = 0; rank < swarm_.workers; ++rank) {
    for (int push = 0; push < kMaxPushes; ++push) {
      const Push& each = pushes_[at(rank)][at(push)];
      const bool before = then[at(rank)][at(push)] != 0;
      const bool after = now[at(rank)][at(push)] != 0;
      if (before && !after && may_be_lost(each)) return true;
      const bool given_up = each.told == Told::kApplied && each.first_boot < seen.boot;
      if (!before && after && given_up) return true;
    }
  }
  return false;
}

bool Oracle::may_be_lost(const Push& push) const {
  if (push.vanished_in < 0) return false;
  const Process& holder = processes_[at(push.process)];
  if (!holder.alive || issued_[at(holder.rank)] > push.incarnation) return true;
  // It lives and has its place: then it has repeated the push, or has not come back yet.
  const bool fenced = holder.fenced >= push.incarnation;
  if (clocks_.rejoining(holder.rank)) return fenced || holder.joined_boot < boot_;
  // It was given up: it must have been kept from coming while it was waited for.
  return fenced && holder.hindered_until >= started_at_[at(holder.fenced_in)];
}

bool Oracle::lossy() const {
  for (const auto& row : pushes_) {
    for (const Push& push : row) {
      if (may_be_lost(push)) return true;
    }
  }
  return false;
}

void Oracle::process_left(int process) {
  Process& gone = processes_[at(process)];
  gone.released = true;
  if (gone.joined_life != life_) return;  // that has let it go was another job
  for (int push = 0; push < kMaxPushes; ++push) {
    const Push& each = pushes_[at(gone.rank)][at(push)];
    if (each.process != process || each.told != Told::kApplied || may_be_lost(each)) continue;
    if (swarm_.keeps_state && durable_digits_[at(gone.rank)][at(push)] == 0) {
      fail(Breach::kLost,
           push_text(gone.rank, push) + " is not on disk, and the worker that holds it was let go");
    }
  }
}

// What is called lost had been answered and is in no model: so many pushes at most.
void Oracle::check_lost(std::uint64_t counted) const {
  std::uint64_t most = 0;
  for (Rank rank = 0; rank < swarm_.workers; ++rank) {
    for (int push = 0; push < kMaxPushes; ++push) {
      const Push& each = pushes_[at(rank)][at(push)];
      const bool answered = each.vanished_in >= 0 || each.poisoned;
      most += answered && digits_[at(rank)][at(push)] == 0;
    }
  }
  // Over several crashes a version that one had pulled may be of a model that was lost before.
  if (life_ == 0 && boot_ <= 1 && counted > most) {
    fail(Breach::kOther, "the server counts " + std::to_string(counted) +
                             " lost pushes, and no more than " + std::to_string(most) + " may be");
  }
}

void Oracle::job_ended(const ServerCounters& counters) {
  check_lost(counters.lost);
  if (counters.pushes != applied()) {
    fail(Breach::kOther, "the server counts " + std::to_string(counters.pushes) +
                             " pushes in the model, of " + std::to_string(applied()));
  }
  for (Rank rank = 0; rank < swarm_.workers; ++rank) {
    for (int push = 0; push < kMaxPushes; ++push) {
      const Push& each = pushes_[at(rank)][at(push)];
      const bool in = digits_[at(rank)][at(push)] != 0;
      if (each.told == Told::kApplied && !in) {
        if (!may_be_lost(each)) {
          fail(Breach::kLost, push_text(rank, push) + " was acknowledged and is not in the model");
        }
        ++excused_;
      }
      if (each.told == Told::kFenced && in) {
        fail(Breach::kFence, push_text(rank, push) + " was called fenced and is in the model");
      }
      if (each.told == Told::kNotApplied && in) {
        fail(Breach::kFence, push_text(rank, push) + " was refused and is in the model");
      }
    }
  }
  const bool named = counters.lost + counters.unaccounted > 0 || counters.updates < version_;
  if (life_ == 0 && excused_ > 0 && !named) {
    fail(Breach::kLost, std::to_string(excused_) + " acknowledged pushes are lost and not named");
  }
}

std::uint64_t Oracle::applied() const {
  std::uint64_t count = 0;
  for (const auto& row : digits_) {
    for (const std::uint8_t digit : row) count += digit != 0;
  }
  return count;
}

}  // namespace cohort::server::simulation
