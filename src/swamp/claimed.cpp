#include "swamp/claimed.h"

#include <cmath>
#include <deque>
#include <utility>

#include "core/error.h"
#include "swamp/candidate.h"

namespace cohort::swamp {
namespace {

// Admission and double check.
class Claimed : public BestModel {
 public:
  Claimed(const PolicyOptions& options, BestRecord best)
      : options_(options), best_(std::move(best)), draws_(best_.draws) {}

  void offer(Candidate candidate, std::vector<Decision>& decisions) override {
    if (const std::string reason = unsound(candidate); !reason.empty()) {
      decisions.push_back(refusal(candidate, best_.version, reason).decision);
    } else if (waiting_.size() >= options_.queue) {
      decisions.push_back(decide(candidate, VerdictKind::kDropped, best_.version));
    } else {
      waiting_.push_back(std::move(candidate));
    }
  }

  std::optional<Examination> next(std::vector<Decision>& decisions) override {
    COHORT_CHECK(!examining_, "one candidate at a time");
    while (!waiting_.empty()) {
      Candidate candidate = std::move(waiting_.front());
      waiting_.pop_front();
      if (candidate.claim < best_.claim) {
        examining_ = std::move(candidate);
        return Examination{.candidate = *examining_, .draw = ++draws_};
      }
      decisions.push_back(decide(candidate, VerdictKind::kRejected, best_.version));
      handled();
    }
    return std::nullopt;
  }

  Judgement examined(std::span<const float> losses) const override {
    const double loss = mean_of(losses);
    const bool better = loss < best_.loss;  // never of a NaN
    Judgement judgement = judge(*examining_, best_.version, loss, better);
    if (better) {
      judgement.best->score = examining_->claim;
      judgement.best->draws = draws_;
    }
    return judgement;
  }

  void commit(const Judgement& judgement) override {
    COHORT_CHECK(examining_, "a candidate that was examined");
    examining_.reset();
    if (judgement.best) best_ = *judgement.best;
    handled();
  }

  const BestRecord& best() const override { return best_; }
  PolicyStanding standing() const override {
    return {.waiting = waiting_.size(), .not_replayed = 0};
  }

 protected:
  // A candidate has been handled, with whatever result.
  virtual void handled() = 0;

  const PolicyOptions& options() const { return options_; }

 private:
  PolicyOptions options_;
  BestRecord best_;
  std::deque<Candidate> waiting_;
  std::optional<Candidate> examining_;
  std::uint64_t draws_ = 0;
};

class Latest final : public Claimed {
 public:
  using Claimed::Claimed;

  std::optional<BestValue> pull(std::uint64_t) override {
    if (!best().model) return std::nullopt;
    return BestValue{.model = best().model,
                     .told = {.version = best().version, .score = best().score}};
  }

 private:
  void handled() override {}
};

class Fifo final : public Claimed {
 public:
  using Claimed::Claimed;

  std::optional<BestValue> pull(std::uint64_t) override {
    if (line_.empty()) return std::nullopt;
    BestValue oldest = std::move(line_.front());
    line_.pop_front();
    if (line_.empty() || line_.front().model != oldest.model) --models_;
    return oldest;
  }

  PolicyStanding standing() const override {
    PolicyStanding standing = Claimed::standing();
    standing.not_replayed = not_replayed_;
    return standing;
  }

 private:
  void handled() override {
    if (!best().model) return;
    const bool another = line_.empty() || line_.back().model != best().model;
    if (line_.size() >= options().replay || (another && models_ >= options().replay_models)) {
      ++not_replayed_;
      return;
    }
    models_ += another ? 1 : 0;
    line_.push_back(
        {.model = best().model, .told = {.version = best().version, .score = best().score}});
  }

  std::deque<BestValue> line_;
  std::size_t models_ = 0;  // different ones in the line; equal ones stand together
  std::uint64_t not_replayed_ = 0;
};

}  // namespace

std::unique_ptr<BestModel> make_fifo(const PolicyOptions& options, BestRecord best) {
  return std::make_unique<Fifo>(options, std::move(best));
}

std::unique_ptr<BestModel> make_latest(const PolicyOptions& options, BestRecord best) {
  return std::make_unique<Latest>(options, std::move(best));
}

}  // namespace cohort::swamp
