#include "swamp/validated.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "swamp/candidate.h"

namespace cohort::swamp {
namespace {

class Validated final : public BestModel {
 public:
  Validated(const PolicyOptions& options, BestRecord best)
      : options_(options), best_(std::move(best)) {}

  void offer(Candidate candidate, std::vector<Decision>& decisions) override {
    if (const std::string reason = unsound(candidate); !reason.empty()) {
      decisions.push_back(refusal(candidate, best_.version, reason).decision);
      return;
    }
    const auto older = std::find_if(waiting_.begin(), waiting_.end(), [&](const Candidate& other) {
      return other.worker == candidate.worker;
    });
    if (older != waiting_.end()) {
      decisions.push_back(decide(*older, VerdictKind::kReplaced, best_.version));
      waiting_.erase(older);
    }
    // Behind those of an equal claim, which are older.
    const auto place =
        std::upper_bound(waiting_.begin(), waiting_.end(), candidate.claim,
                         [](double claim, const Candidate& other) { return claim < other.claim; });
    waiting_.insert(place, std::move(candidate));
    if (waiting_.size() <= options_.queue) return;
    decisions.push_back(decide(waiting_.back(), VerdictKind::kDropped, best_.version));
    waiting_.pop_back();
  }

  std::optional<Examination> next(std::vector<Decision>&) override {
    COHORT_CHECK(!examining_, "one candidate at a time");
    if (waiting_.empty()) return std::nullopt;
    examining_ = std::move(waiting_.front());
    waiting_.erase(waiting_.begin());
    return Examination{.candidate = *examining_, .draw = 0};
  }

  Judgement examined(std::span<const float> losses) const override {
    const double loss = mean_of(losses);
    if (best_.model && losses.size() != best_.losses.size()) {
      return refusal(*examining_, best_.version,
                     "it was examined on " + std::to_string(losses.size()) +
                         " samples, the best model on " + std::to_string(best_.losses.size()));
    }
    const bool better = std::isfinite(loss) && (!best_.model || clearly_better(losses));
    Judgement judgement = judge(*examining_, best_.version, loss, better);
    if (better) judgement.best->losses = {losses.begin(), losses.end()};
    return judgement;
  }

  void commit(const Judgement& judgement) override {
    COHORT_CHECK(examining_, "a candidate that was examined");
    examining_.reset();
    if (judgement.best) best_ = *judgement.best;
  }

  std::optional<BestValue> pull(std::uint64_t has_version) override {
    if (!best_.model || has_version >= best_.version) return std::nullopt;
    return BestValue{.model = best_.model,
                     .told = {.version = best_.version, .score = best_.score}};
  }

  const BestRecord& best() const override { return best_; }
  PolicyStanding standing() const override {
    return {.waiting = waiting_.size(), .not_replayed = 0};
  }

 private:
  bool clearly_better(std::span<const float> losses) const {
    const PairedDifference difference = paired_difference(losses, best_.losses);
    return difference.mean + options_.hysteresis * difference.standard_error < 0;
  }

  PolicyOptions options_;
  BestRecord best_;
  std::vector<Candidate> waiting_;  // best claim first
  std::optional<Candidate> examining_;
};

}  // namespace

std::unique_ptr<BestModel> make_validated(const PolicyOptions& options, BestRecord best) {
  return std::make_unique<Validated>(options, std::move(best));
}

}  // namespace cohort::swamp
