// How a trainer agrees with the others, goes on without those lost and with those who come back.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "core/clock.h"
#include "core/error.h"
#include "engine/trainer.h"

namespace cohort {
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

void Trainer::begin_progress() {
  parts_.outlets.progress->begin(
      {.total_steps = options_.total_steps,
       .steps_per_epoch = parts_.order.steps_per_epoch(),
       .first_epoch = epoch_at(done_),
       .earlier_epochs = options_.start_epoch,
       .text = outcome_.text,
       .evaluate_every =
           options_.evaluate_when ? 0 : options_.eval_every_epochs * parts_.order.steps_per_epoch(),
       .evaluates = parts_.test != nullptr},
      done_);
}

bool Trainer::leads_now() {
  if (!parts_.group.is_first()) return false;
  if (parts_.take_over) {
    parts_.outlets = std::exchange(parts_.take_over, nullptr)();
    begin_progress();
    event("leads", "rank " + std::to_string(parts_.group.rank()));
  }
  return true;
}

void Trainer::agree(const std::atomic<bool>& stop) {
  if (!parts_.group.alone()) {
    // All are waited for anyway, and what is under way is no part of the agreement.
    const StopWatch watch(times_.exchange_seconds);
    parts_.method.drain(parts_.replica);
  }
  const TrafficBook::Scope scope(traffic_, TrafficPurpose::kCoordination);
  ElasticCollectives::Agreement agreed;
  const auto steps = static_cast<double>(options_.agree_every_steps);
  double wanted = steps;
  if (options_.agree_every_seconds > 0 && agreed_ > 0) {
    const double step_seconds = seconds_between(agreed_at_, Clock::now()) / (done_ - agreed_);
    // Slowly farther and farther: how long the first steps take says little.
    const double at_most = std::min(kMaxSteps, 2.0 * static_cast<double>(done_ - agreed_));
    wanted = std::clamp(options_.agree_every_seconds / step_seconds, 1.0, at_most);
  }
  {
    const StopWatch watch(
        times_.exchange_seconds);  // the slowest is waited for here, if not before
    const double next = std::floor((static_cast<double>(done_) + wanted) / steps) * steps;
    agreed = parts_.group.agree(stop, static_cast<std::int64_t>(next) - done_);
  }
  stopping_ = agreed.any;
  next_agreement_ = done_ + std::max(options_.agree_every_steps, Step{agreed.first});
  agreed_ = done_;
  agreed_at_ = Clock::now();
  note_lost(agreed.joined);
  if (!agreed.joined.empty()) welcome(agreed.joined);
}

// Who is back may have been missed by nobody yet.
void Trainer::note_lost(const std::vector<Rank>& joined) {
  const int size = parts_.group.size();
  were_present_.resize(static_cast<std::size_t>(size), true);
  const bool leads = leads_now();
  for (Rank rank = 0; rank < size; ++rank) {
    const bool is = parts_.group.is_present(rank);
    const bool stayed = is && std::find(joined.begin(), joined.end(), rank) == joined.end();
    if (were_present_[rank] && !stayed && leads) {
      event("lost", "rank " + std::to_string(rank));
      parts_.outlets.progress->note(
          "rank " + std::to_string(rank) +
          " is lost: " + counted(parts_.group.present() - static_cast<int>(joined.size()), size) +
          " go on at step " + std::to_string(done_));
    }
    were_present_[rank] = is;
  }
}

void Trainer::welcome(const std::vector<Rank>& joined) {
  const TrafficBook::Scope scope(traffic_, TrafficPurpose::kStart,
                                 TrafficBook::Messages::kForPurpose);
  for (const Rank rank : joined) parts_.method.welcome(parts_.replica, rank);
  if (leads_now()) {
    const nlohmann::json document = {{"step", done_},           {"recorded", recorded_},
                                     {"saved", saved_},         {"best_unsaved", best_unsaved_},
                                     {"next", next_agreement_}, {"first_loss", watch_.first_loss()},
                                     {"engine", engine_state()}};
    const Bytes entry = entry_of(document, to_bytes(pack_newcomer(parts_.replica, parts_.method)));
    for (const Rank rank : joined) {
      parts_.group.welcome(rank, entry);
      event("joined", "rank " + std::to_string(rank));
      parts_.outlets.progress->note(
          "rank " + std::to_string(rank) + " is back at step " + std::to_string(done_) + ": " +
          counted(parts_.group.present(), parts_.group.size()) + " go on, it from rank " +
          std::to_string(parts_.group.rank()) + "'s model");
    }
  }
  // A message of the newcomer must not come to one that has not welcomed it.
  parts_.group.barrier();
}

void Trainer::enter() {
  const Bytes entry = parts_.group.enter();
  std::uint64_t length = 0;
  const bool has_length = entry.size() >= sizeof length;
  if (has_length) std::memcpy(&length, entry.data(), sizeof length);
  if (!has_length || length > entry.size() - sizeof length) {
    throw PeerError("who leads sent an entry that ends early");
  }
  const auto* text = reinterpret_cast<const char*>(entry.data()) + sizeof length;
  const auto state = std::span<const std::byte>(entry).subspan(sizeof length + length);
  try {
    const auto document = nlohmann::json::parse(text, text + length);
    resume_at(document.at("step"), document.at("engine"), "who leads");
    recorded_ = document.at("recorded");
    saved_ = document.at("saved");
    best_unsaved_ = document.at("best_unsaved");
    next_agreement_ = document.at("next");
    watch_.begin_from(document.at("first_loss"));
  } catch (const nlohmann::json::exception& error) {
    throw PeerError(std::string("who leads sent an entry that cannot be read: ") + error.what());
  }
  unpack_worker(worker_state_from(state, 0), parts_.replica, parts_.method, done_);
  agreed_ = done_;
  agreed_at_ = Clock::now();
  clock_offsets_.assign(static_cast<std::size_t>(parts_.group.size()), 0.0);
  parts_.group.barrier();
}

}  // namespace cohort
