#include "engine/group_changes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>

#include "core/clock.h"
#include "core/error.h"

namespace cohort::engine {
namespace {

constexpr double kMaxSteps = 1000;  // between two agreements

std::string counted(int present, int size) {
  return std::to_string(present) + " of " + std::to_string(size) + " workers";
}

// A length, a JSON text of that length, the rest.
Bytes entry_of(const nlohmann::json& document, std::span<const std::byte> rest) {
  const std::string text = document.dump();
  const std::uint64_t length = text.size();
  Bytes bytes;
  for (const auto part :
       {std::as_bytes(std::span(&length, 1)), std::as_bytes(std::span(text)), rest}) {
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
  return bytes;
}

}  // namespace

void GroupChanges::begin() {
  const Step every = state_.options.agree_every_steps;
  next_ = (state_.done / every + 1) * every;
}

void GroupChanges::after_step(const std::atomic<bool>& stop) {
  if (state_.done >= next_) return agree(stop);
  if (!stop || stop_noted_ || state_.options.agree_every_seconds > 0) return;
  state_.note("stopping at the next average of the models, at step " + std::to_string(next_));
  stop_noted_ = true;
}

// As many steps away as the user asked for, or as take the seconds that the user asked for.
Step GroupChanges::next_agreement() const {
  const auto steps = static_cast<double>(state_.options.agree_every_steps);
  double wanted = steps;
  if (state_.options.agree_every_seconds > 0 && agreed_ > 0) {
    const auto taken = static_cast<double>(state_.done - agreed_);
    const double step_seconds = seconds_between(agreed_at_, Clock::now()) / taken;
    // Slowly farther and farther: how long the first steps take says little.
    const double at_most = std::min(kMaxSteps, 2.0 * taken);
    wanted = std::clamp(state_.options.agree_every_seconds / step_seconds, 1.0, at_most);
  }
  const double next = std::floor((static_cast<double>(state_.done) + wanted) / steps) * steps;
  return static_cast<Step>(next);
}

void GroupChanges::agree(const std::atomic<bool>& stop) {
  // All are waited for anyway, and what is under way is no part of the agreement.
  state_.drain();
  const TrafficBook::Scope scope(state_.traffic, TrafficPurpose::kCoordination);
  collectives::ElasticCollectives::Agreement agreed;
  const Step next = next_agreement();
  {
    // The slowest is waited for here, if not before.
    const StopWatch watch(state_.times.exchange_seconds);
    agreed = state_.parts.group.agree(stop, next - state_.done);
  }
  state_.stopping = agreed.any;
  next_ = state_.done + std::max(state_.options.agree_every_steps, Step{agreed.first});
  agreed_ = state_.done;
  agreed_at_ = Clock::now();
  note_lost(agreed.joined);
  if (!agreed.joined.empty()) welcome(agreed.joined);
}

// Who is back may have been missed by nobody yet.
void GroupChanges::note_lost(const std::vector<Rank>& joined) {
  const WorkerGroup& group = state_.parts.group;
  const int size = group.size();
  were_present_.resize(static_cast<std::size_t>(size), true);
  const bool leads = state_.leads();
  for (Rank rank = 0; rank < size; ++rank) {
    const bool is = group.is_present(rank);
    const bool stayed = is && std::find(joined.begin(), joined.end(), rank) == joined.end();
    if (were_present_[rank] && !stayed && leads) {
      state_.event("lost", "rank " + std::to_string(rank));
      state_.note("rank " + std::to_string(rank) +
                  " is lost: " + counted(group.present() - static_cast<int>(joined.size()), size) +
                  " go on at step " + std::to_string(state_.done));
    }
    were_present_[rank] = is;
  }
}

void GroupChanges::welcome(const std::vector<Rank>& joined) {
  TrainerParts& parts = state_.parts;
  const TrafficBook::Scope scope(state_.traffic, TrafficPurpose::kStart,
                                 TrafficBook::Messages::kForPurpose);
  COHORT_CHECK(state_.elastic != nullptr,
               "only where a method outlives a worker do others come back");
  for (const Rank rank : joined) state_.elastic->welcome(parts.replica, rank);
  if (state_.leads()) {
    const nlohmann::json document = {{"step", state_.done},
                                     {"recorded", state_.recorded},
                                     {"saved", state_.saved},
                                     {"best_unsaved", state_.best_unsaved},
                                     {"next", next_},
                                     {"first_loss", records_.losses().first_loss()},
                                     {"engine", checkpoints_.engine_state()}};
    const Bytes entry = entry_of(document, to_bytes(pack_newcomer(parts.replica, parts.method)));
    for (const Rank rank : joined) {
      parts.group.welcome(rank, entry);
      state_.event("joined", "rank " + std::to_string(rank));
      state_.note("rank " + std::to_string(rank) + " is back at step " +
                  std::to_string(state_.done) + ": " +
                  counted(parts.group.present(), parts.group.size()) + " go on, it from rank " +
                  std::to_string(parts.group.rank()) + "'s model");
    }
  }
  // A message of the newcomer must not come to one that has not welcomed it.
  parts.group.barrier();
}

void GroupChanges::enter() {
  TrainerParts& parts = state_.parts;
  const Bytes entry = parts.group.enter();
  std::uint64_t length = 0;
  const bool has_length = entry.size() >= sizeof length;
  if (has_length) std::memcpy(&length, entry.data(), sizeof length);
  if (!has_length || length > entry.size() - sizeof length) {
    throw PeerError("the leader sent an entry that ends early");
  }
  const auto* text = reinterpret_cast<const char*>(entry.data()) + sizeof length;
  const auto rest = std::span<const std::byte>(entry).subspan(sizeof length + length);
  try {
    const auto document = nlohmann::json::parse(text, text + length);
    checkpoints_.resume_at(document.at("step"), document.at("engine"), "the leader");
    state_.recorded = document.at("recorded");
    state_.saved = document.at("saved");
    state_.best_unsaved = document.at("best_unsaved");
    next_ = document.at("next");
    records_.losses().begin_from(document.at("first_loss"));
  } catch (const nlohmann::json::exception& error) {
    throw PeerError(std::string("the leader sent an entry that cannot be read: ") + error.what());
  }
  unpack_worker(worker_state_from(rest, 0), parts.replica, parts.method, state_.done);
  agreed_ = state_.done;
  agreed_at_ = Clock::now();
  records_.begin_late();
  parts.group.barrier();
}

}  // namespace cohort::engine
