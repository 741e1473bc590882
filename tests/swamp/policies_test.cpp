// What each policy does with a schedule of offers and pulls that is written out by hand, and what
// all of them have in common.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "core/error.h"
#include "core/random.h"
#include "swamp/candidate.h"
#include "swamp/registry.h"

namespace cohort::swamp {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

ModelValues three_values_of(float value) {
  return std::make_shared<const std::vector<float>>(std::vector<float>{value, -value, 1});
}

Candidate candidate(Rank worker, std::uint64_t sequence, double claim, float value) {
  return {.worker = worker,
          .incarnation = 1,
          .sequence = sequence,
          .claim = claim,
          .model = three_values_of(value)};
}

// Drives a policy as the server does, with the losses given by the test.
class Driver {
 public:
  explicit Driver(const std::string& policy, PolicyOptions options = {}, BestRecord best = {})
      : policy_(swamp_policies().make(policy, options, std::move(best))) {}

  void offer(const Candidate& given) { policy_->offer(given, decisions_); }

  // Looks at the next candidate, which is found to have these losses.
  std::optional<Examination> examine(const std::vector<float>& losses) {
    auto next = policy_->next(decisions_);
    if (!next) return next;
    const std::uint64_t before = policy_->best().version;
    const Judgement judgement = policy_->examined(losses);
    EXPECT_EQ(policy_->best().version, before) << "judging alone changes nothing";
    policy_->commit(judgement);
    decisions_.push_back(judgement.decision);
    return next;
  }

  // Offers and examines at once; what it was told.
  OfferVerdict handle(const Candidate& given, const std::vector<float>& losses) {
    decisions_.clear();
    offer(given);
    examine(losses);
    EXPECT_EQ(decisions_.size(), 1U);
    return decisions_.back().verdict;
  }

  // "worker.sequence kind", in the order they came.
  std::vector<std::string> told() {
    std::vector<std::string> texts;
    for (const Decision& decision : decisions_) {
      texts.push_back(std::to_string(decision.worker) + "." +
                      std::to_string(decision.verdict.sequence) + " " +
                      std::string(to_text(decision.verdict.kind)));
    }
    decisions_.clear();
    return texts;
  }

  // The first value of what is pulled; NaN for nothing.
  double pull(std::uint64_t has_version = 0) {
    pulled_ = policy_->pull(has_version);
    return pulled_ ? double{pulled_->model->front()} : kNan;
  }
  const PulledModel& score() const { return pulled_->told; }

  BestModel& policy() { return *policy_; }

 private:
  std::unique_ptr<BestModel> policy_;
  std::vector<Decision> decisions_;
  std::optional<BestValue> pulled_;
};

// --- fifo ----------------------------------------------------------------------------------------

TEST(Fifo, PullsReplayThePast) {
  Driver fifo("fifo");
  EXPECT_TRUE(std::isnan(fifo.pull())) << "nothing was accepted yet";
  // The first offer always passes: claim and check are below infinity.
  EXPECT_EQ(fifo.handle(candidate(0, 1, 2.3, 10), {2.2F}).kind, VerdictKind::kAccepted);
  // A better claim, but a worse check: rejected, and the line grows all the same.
  EXPECT_EQ(fifo.handle(candidate(1, 1, 2.0, 11), {2.4F}).kind, VerdictKind::kRejected);
  EXPECT_EQ(fifo.handle(candidate(0, 2, 1.0, 20), {1.1F}).kind, VerdictKind::kAccepted);
  // Not admitted: nobody examines it, and the line grows.
  EXPECT_EQ(fifo.handle(candidate(1, 2, 1.5, 12), {0.1F}).kind, VerdictKind::kRejected);
  EXPECT_EQ(fifo.handle(candidate(0, 3, 0.5, 30), {0.6F}).kind, VerdictKind::kAccepted);
  // The line: 10, 10, 20, 20, 30. The best model is 30, and a worker is given 10.
  EXPECT_EQ(fifo.pull(), 10);
  EXPECT_EQ(fifo.score().version, 1U);
  EXPECT_EQ(fifo.score().score, 2.3) << "the claim, not what was checked";
  EXPECT_EQ(fifo.pull(), 10);
  EXPECT_EQ(fifo.pull(3), 20) << "whatever the worker has";
  EXPECT_EQ(fifo.pull(), 20);
  EXPECT_EQ(fifo.pull(), 30);
  EXPECT_TRUE(std::isnan(fifo.pull()));
  EXPECT_EQ(fifo.policy().best().version, 3U);
}

TEST(Fifo, EachCheckIsAFreshDraw) {
  Driver fifo("fifo");
  fifo.offer(candidate(0, 1, 2.0, 1));
  fifo.offer(candidate(0, 2, 1.0, 2));
  fifo.offer(candidate(0, 3, 3.0, 3));
  fifo.offer(candidate(0, 4, 0.5, 4));
  EXPECT_EQ(fifo.examine({2})->draw, 1U);
  EXPECT_EQ(fifo.examine({1})->draw, 2U);
  // The third is not admitted and draws nothing.
  EXPECT_EQ(fifo.examine({0.5F})->draw, 3U);
  EXPECT_THAT(fifo.told(),
              ElementsAre("0.1 accepted", "0.2 accepted", "0.3 rejected", "0.4 accepted"));
}

TEST(Fifo, ItsLineIsBounded) {
  Driver fifo("fifo", {.replay = 4, .replay_models = 2});
  fifo.handle(candidate(0, 1, 3, 1), {3});
  fifo.handle(candidate(0, 2, 2, 2), {2});
  fifo.handle(candidate(0, 3, 1, 3), {1});  // a third model has no room
  EXPECT_EQ(fifo.policy().standing().not_replayed, 1U);
  EXPECT_EQ(fifo.pull(), 1);
  fifo.handle(candidate(0, 4, 9, 4), {9});  // 3, the best, has room now
  for (std::uint64_t i = 5; i < 9; ++i) fifo.handle(candidate(0, i, 9, 4), {9});
  EXPECT_EQ(fifo.policy().standing().not_replayed, 3U);
  EXPECT_EQ(fifo.pull(), 2);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(fifo.pull(), 3);
  EXPECT_TRUE(std::isnan(fifo.pull()));
}

// --- latest --------------------------------------------------------------------------------------

TEST(Latest, OneLuckyBatchFreezesIt) {
  Driver latest("latest");
  EXPECT_EQ(latest.handle(candidate(0, 1, 2.3, 1), {2.2F}).kind, VerdictKind::kAccepted);
  // A lucky batch: the model's loss is 0.5, its claim 0.1.
  EXPECT_EQ(latest.handle(candidate(1, 1, 0.1, 2), {0.5F}).kind, VerdictKind::kAccepted);
  // Much better models, of honest claims, are not even looked at any more.
  for (std::uint64_t i = 2; i < 20; ++i) {
    const OfferVerdict verdict = latest.handle(candidate(0, i, 0.12, 3), {0.05F});
    EXPECT_EQ(verdict.kind, VerdictKind::kRejected);
    EXPECT_TRUE(std::isnan(verdict.loss)) << "nobody examined it";
    EXPECT_EQ(latest.pull(2), 2) << "also to whom has it";
    EXPECT_EQ(latest.score().score, 0.1) << "the puller has to beat the lucky claim too";
  }
  EXPECT_EQ(latest.policy().best().version, 2U);
}

TEST(Latest, ADoubleCheckStopsALuckyClaimOfAWorseModel) {
  Driver latest("latest");
  latest.handle(candidate(0, 1, 1.0, 1), {1.0F, 1.0F});
  const OfferVerdict verdict = latest.handle(candidate(0, 2, 0.2, 2), {0.5F, 1.75F});
  EXPECT_EQ(verdict.kind, VerdictKind::kRejected);
  EXPECT_EQ(verdict.loss, 1.125);
  // It has not become the hurdle.
  EXPECT_EQ(latest.handle(candidate(0, 3, 0.9, 3), {0.5F}).kind, VerdictKind::kAccepted);
  EXPECT_EQ(latest.policy().best().claim, 0.9);
}

TEST(Latest, AFullQueueDropsTheNewest) {
  Driver latest("latest", {.queue = 2});
  for (std::uint64_t i = 1; i <= 3; ++i) latest.offer(candidate(0, i, 1.0, 1));
  EXPECT_THAT(latest.told(), ElementsAre("0.3 dropped"));
}

// --- validated -----------------------------------------------------------------------------------

TEST(Validated, ClaimsDecideNothing) {
  Driver validated("validated");
  EXPECT_EQ(validated.handle(candidate(0, 1, 0.001, 1), {2, 2, 2, 2}).kind, VerdictKind::kAccepted);
  // The lucky claim freezes nothing: an honest, better model is taken.
  const OfferVerdict verdict = validated.handle(candidate(1, 1, 0.9, 2), {1, 1, 1, 1.5F});
  EXPECT_EQ(verdict.kind, VerdictKind::kAccepted);
  EXPECT_EQ(verdict.loss, 1.125);
  EXPECT_EQ(verdict.version, 2U);
  EXPECT_EQ(validated.pull(1), 2);
  EXPECT_EQ(validated.score().score, 1.125) << "what was validated, not what was claimed";
}

TEST(Validated, TheFirstFiniteCandidateIsTaken) {
  Driver validated("validated", {.hysteresis = 100});
  EXPECT_EQ(validated.handle(candidate(0, 1, 5, 1), {INFINITY, 1}).kind, VerdictKind::kRejected);
  EXPECT_EQ(validated.handle(candidate(0, 2, 5, 1), {}).kind, VerdictKind::kRejected);
  EXPECT_EQ(validated.handle(candidate(0, 3, 5, 1), {9, 8}).kind, VerdictKind::kAccepted);
}

// d = {-1, -1, -1, x}: mean (x - 3) / 4; with x = 1 the mean is -0.5, the deviations are
// {-0.5, -0.5, -0.5, 1.5}, their squares sum to 3, the variance is 1, the standard error 0.5.
TEST(Validated, HysteresisIsInStandardErrorsOfThePairedDifference) {
  const std::vector<float> best = {3, 10, 5, 1};
  const std::vector<float> other = {2, 9, 4, 2};
  const PairedDifference difference = paired_difference(other, best);
  EXPECT_DOUBLE_EQ(difference.mean, -0.5);
  EXPECT_DOUBLE_EQ(difference.standard_error, 0.5);
  const auto verdict_at = [&](double hysteresis) {
    Driver validated("validated", {.hysteresis = hysteresis});
    validated.handle(candidate(0, 1, 5, 1), best);
    return validated.handle(candidate(0, 2, 4, 2), other).kind;
  };
  EXPECT_EQ(verdict_at(0), VerdictKind::kAccepted);
  EXPECT_EQ(verdict_at(0.999), VerdictKind::kAccepted);
  EXPECT_EQ(verdict_at(1), VerdictKind::kRejected) << "-0.5 + 0.5 is not below 0";
  EXPECT_EQ(verdict_at(2), VerdictKind::kRejected);
}

TEST(Validated, WithoutHysteresisAnyImprovementCountsAndNoneDoesNot) {
  Driver validated("validated", {.hysteresis = 0});
  validated.handle(candidate(0, 1, 1, 1), {1, 2});
  EXPECT_EQ(validated.handle(candidate(0, 2, 1, 2), {2, 1}).kind, VerdictKind::kRejected);
  EXPECT_EQ(validated.handle(candidate(0, 3, 1, 3), {2, 0.999F}).kind, VerdictKind::kAccepted);
}

TEST(Validated, PairingSeesWhatTheMeansAloneWouldHide) {
  // Losses from 0 to 99, each a little lower: the means differ by far less than they scatter.
  std::vector<float> best;
  std::vector<float> other;
  for (int i = 0; i < 100; ++i) {
    best.push_back(static_cast<float>(i));
    other.push_back(static_cast<float>(i) - (i % 2 == 0 ? 0.25F : 0.5F));
  }
  Driver validated("validated", {.hysteresis = 10});
  validated.handle(candidate(0, 1, 1, 1), best);
  EXPECT_EQ(validated.handle(candidate(0, 2, 1, 2), other).kind, VerdictKind::kAccepted);
}

TEST(Validated, ThePullGuardsTheVersion) {
  Driver validated("validated");
  EXPECT_TRUE(std::isnan(validated.pull()));
  validated.handle(candidate(0, 1, 1, 1), {2});
  EXPECT_EQ(validated.pull(0), 1);
  EXPECT_TRUE(std::isnan(validated.pull(1)));
  validated.handle(candidate(0, 2, 1, 2), {1});
  EXPECT_EQ(validated.pull(1), 2);
  EXPECT_TRUE(std::isnan(validated.pull(2)));
}

TEST(Validated, ExaminesBestClaimsFirstAndTheOlderOfEqualOnes) {
  Driver validated("validated");
  validated.offer(candidate(0, 7, 0.5, 1));
  validated.offer(candidate(1, 3, 0.2, 2));
  validated.offer(candidate(2, 9, 0.5, 3));
  validated.offer(candidate(3, 1, 0.9, 4));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(validated.examine({1})->draw, 0U);
  EXPECT_THAT(validated.told(),
              ElementsAre("1.3 accepted", "0.7 rejected", "2.9 rejected", "3.1 rejected"));
}

TEST(Validated, ANewerOfferTakesThePlaceOfItsWorkersOlderOne) {
  Driver validated("validated");
  validated.offer(candidate(0, 1, 0.3, 1));
  validated.offer(candidate(1, 1, 0.4, 2));
  validated.offer(candidate(0, 2, 0.6, 3));  // of a worse claim, and still
  EXPECT_THAT(validated.told(), ElementsAre("0.1 replaced"));
  EXPECT_EQ(validated.policy().standing().waiting, 2U);
  validated.examine({1});
  validated.examine({0.5F});
  EXPECT_THAT(validated.told(), ElementsAre("1.1 accepted", "0.2 accepted"));
}

TEST(Validated, OneThatIsBeingExaminedIsNotReplaced) {
  Driver validated("validated");
  validated.offer(candidate(0, 1, 0.3, 1));
  std::vector<Decision> decisions;
  ASSERT_TRUE(validated.policy().next(decisions));
  validated.policy().offer(candidate(0, 2, 0.2, 2), decisions);
  EXPECT_TRUE(decisions.empty());
  EXPECT_EQ(validated.policy().standing().waiting, 1U);
}

TEST(Validated, AFullQueueDropsTheWorstClaim) {
  Driver validated("validated", {.queue = 3});
  validated.offer(candidate(0, 1, 0.5, 1));
  validated.offer(candidate(1, 1, 0.9, 2));
  validated.offer(candidate(2, 1, 0.7, 3));
  validated.offer(candidate(3, 1, 0.6, 4));
  EXPECT_THAT(validated.told(), ElementsAre("1.1 dropped"));
  validated.offer(candidate(4, 1, 0.8, 5));  // itself the worst
  EXPECT_THAT(validated.told(), ElementsAre("4.1 dropped"));
  EXPECT_EQ(validated.policy().standing().waiting, 3U);
}

TEST(Validated, LossesOfAnotherSetAreNoComparison) {
  Driver validated("validated");
  validated.handle(candidate(0, 1, 1, 1), {2, 2});
  const OfferVerdict verdict = validated.handle(candidate(0, 2, 1, 2), {1});
  EXPECT_EQ(verdict.kind, VerdictKind::kRefused);
  EXPECT_THAT(verdict.reason, HasSubstr("1 samples"));
}

// --- all of them ---------------------------------------------------------------------------------

class Policies : public testing::TestWithParam<std::string> {};

std::vector<std::string> all_names() { return swamp_policies().names(); }
INSTANTIATE_TEST_SUITE_P(All, Policies, testing::ValuesIn(all_names()),
                         [](const auto& each) { return each.param; });

TEST_P(Policies, WhatIsNoNumberNeverWins) {
  Driver driver(GetParam());
  const auto refused = [&](const Candidate& given) {
    driver.offer(given);
    return driver.told();
  };
  EXPECT_THAT(refused(candidate(0, 1, kNan, 1)), ElementsAre("0.1 refused"));
  EXPECT_THAT(refused(candidate(0, 2, kInfinity, 1)), ElementsAre("0.2 refused"));
  EXPECT_THAT(refused(candidate(0, 3, -kInfinity, 1)), ElementsAre("0.3 refused"));
  EXPECT_THAT(refused(candidate(0, 4, 1, NAN)), ElementsAre("0.4 refused"));
  EXPECT_THAT(refused(candidate(0, 5, 1, INFINITY)), ElementsAre("0.5 refused"));
  EXPECT_EQ(driver.handle(candidate(0, 6, 1, 1), {NAN, 1}).kind, VerdictKind::kRejected);
  EXPECT_EQ(driver.handle(candidate(0, 7, 1, 1), {INFINITY}).kind, VerdictKind::kRejected);
  EXPECT_EQ(driver.handle(candidate(0, 8, 1, 1), {-INFINITY}).kind, VerdictKind::kRejected);
  EXPECT_EQ(driver.handle(candidate(0, 9, 1, 1), {}).kind, VerdictKind::kRejected);
  EXPECT_EQ(driver.policy().best().version, 0U);
  EXPECT_TRUE(std::isnan(driver.pull()));
}

TEST_P(Policies, AModelThatCouldNotBeExaminedChangesNothing) {
  Driver driver(GetParam());
  driver.handle(candidate(0, 1, 2, 1), {2});
  driver.offer(candidate(0, 2, 1, 2));
  std::vector<Decision> decisions;
  const auto next = driver.policy().next(decisions);
  ASSERT_TRUE(next);
  driver.policy().commit(refusal(next->candidate, 1, "no memory"));
  EXPECT_EQ(driver.policy().best().version, 1U);
  EXPECT_EQ(driver.handle(candidate(0, 3, 0.5, 3), {0.5F}).version, 2U);
}

TEST_P(Policies, GoesOnFromWhatWasKept) {
  Driver before(GetParam());
  before.handle(candidate(0, 1, 2, 1), {2, 3});
  before.handle(candidate(0, 2, 1, 2), {1, 2});
  const BestRecord kept = before.policy().best();
  ASSERT_EQ(kept.version, 2U);
  Driver after(GetParam(), {}, kept);
  EXPECT_EQ(after.policy().best().score, kept.score);
  EXPECT_EQ(after.handle(candidate(0, 3, 0.9, 3), {1.5F, 2.5F}).kind, VerdictKind::kRejected);
  EXPECT_EQ(after.handle(candidate(0, 4, 0.8, 4), {0.5F, 1.5F}).version, 3U);
}

// Every candidate is told exactly one thing; versions grow by 1; the queue keeps to its bound; the
// whole is the same the second time.
TEST_P(Policies, TellEveryCandidateOneThing) {
  const auto play = [&](Seed seed) {
    RandomStream random(seed, "policies");
    auto policy = swamp_policies().make(GetParam(), {.queue = 5}, BestRecord{});
    std::vector<Decision> decisions;
    std::map<std::pair<Rank, std::uint64_t>, int> told;
    std::map<Rank, std::uint64_t> sequence;
    std::string history;
    std::uint64_t version = 0;
    for (int step = 0; step < 400; ++step) {
      if (step < 350 && random.below(3) > 0) {
        const auto worker = static_cast<Rank>(random.below(8));
        const double claim = random.below(20) == 0 ? kNan : random.uniform();
        policy->offer(candidate(worker, ++sequence[worker], claim,
                                random.below(20) == 0 ? NAN : static_cast<float>(step)),
                      decisions);
      } else if (const auto next = policy->next(decisions)) {
        std::vector<float> losses(4);
        for (float& loss : losses) loss = static_cast<float>(random.uniform());
        const Judgement judgement = policy->examined(losses);
        policy->commit(judgement);
        decisions.push_back(judgement.decision);
        if (judgement.decision.verdict.kind == VerdictKind::kAccepted) {
          EXPECT_EQ(policy->best().version, ++version);
        }
        EXPECT_EQ(judgement.decision.verdict.version, version);
      }
      EXPECT_LE(policy->standing().waiting, 5U);
      EXPECT_EQ(policy->best().version, version);
      for (const Decision& decision : decisions) {
        ++told[{decision.worker, decision.verdict.sequence}];
        history += std::to_string(decision.worker) + to_text(decision.verdict.kind).data();
      }
      decisions.clear();
    }
    EXPECT_EQ(policy->standing().waiting, 0U) << "all is judged in the end";
    std::size_t offers = 0;
    for (const auto& [worker, count] : sequence) offers += count;
    EXPECT_EQ(told.size(), offers);
    for (const auto& [which, times] : told) EXPECT_EQ(times, 1);
    EXPECT_GE(version, 1U);
    return history;
  };
  for (Seed seed = 1; seed <= 20; ++seed) EXPECT_EQ(play(seed), play(seed));
}

TEST(PolicyRegistry, AnUnknownNameListsTheKnown) {
  try {
    swamp_policies().make("newest", PolicyOptions{}, BestRecord{});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("validated"));
  }
}

}  // namespace
}  // namespace cohort::swamp
