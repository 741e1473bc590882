#include "engine/loss_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "engine/small_training.h"

namespace cohort::engine::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr double kGuess = 2.302585;  // of ten classes

LossWatch watch_for(Step steps_per_epoch, Step total_steps, bool may_drift = false) {
  return LossWatch({.classes = 10,
                    .may_drift = may_drift,
                    .steps_per_epoch = steps_per_epoch,
                    .total_steps = total_steps});
}

// `steps` of that mean loss, by records of 50; how many warnings came.
int feed(LossWatch& watch, double mean, Step steps, Step record = 50) {
  int warnings = 0;
  for (Step step = 0; step < steps; step += record) {
    const std::int64_t samples = 64 * record;
    if (!watch.add(mean * static_cast<double>(samples), samples, record).empty()) ++warnings;
  }
  return warnings;
}

TEST(LossWatch, SaysOnceThatTheLossStaysThatOfGuessing) {
  LossWatch watch = watch_for(100, 10000);
  EXPECT_EQ(feed(watch, kGuess, 250), 0);
  EXPECT_THAT(watch.verdict(), IsEmpty());
  EXPECT_EQ(feed(watch, kGuess, 10000), 1);
  EXPECT_THAT(watch.verdict(), HasSubstr("guessing (2.303)"));
  EXPECT_THAT(watch.verdict(), HasSubstr("lower --lr"));
  EXPECT_EQ(feed(watch, 1.0, 100), 0);
  EXPECT_THAT(watch.verdict(), IsEmpty()) << "it learns after all";
  EXPECT_EQ(feed(watch, kGuess, 1000), 0) << "said before";
  EXPECT_THAT(watch.verdict(), HasSubstr("in the last 900 steps"));
}

TEST(LossWatch, LooksAtTheTestLossAtTheEnd) {
  LossWatch watch = watch_for(157, 314);
  EXPECT_EQ(feed(watch, 1.9, 100), 0) << "one better block";
  EXPECT_EQ(feed(watch, kGuess, 214, 1), 0);
  EXPECT_THAT(watch.verdict(), IsEmpty());
  EXPECT_THAT(watch.verdict_at_end(std::nullopt), IsEmpty());
  EXPECT_THAT(watch.verdict_at_end(1.5), IsEmpty());
  EXPECT_THAT(
      watch.verdict_at_end(2.3046),
      HasSubstr("after 314 steps the test loss (2.305) is no better than that of guessing"));
  EXPECT_THAT(watch.verdict_at_end(4.8), IsEmpty()) << "learned by heart";
  LossWatch begun = watch_for(157, 314);
  feed(begun, kGuess, 90, 1);
  EXPECT_THAT(begun.verdict_at_end(kGuess), IsEmpty()) << "too early to say";
}

TEST(LossWatch, WaitsForAnEpochButNotForEver) {
  LossWatch epoch = watch_for(1000, 1e6);
  EXPECT_EQ(feed(epoch, kGuess, 900), 0);
  EXPECT_EQ(feed(epoch, kGuess, 100), 1);
  LossWatch long_one = watch_for(50000, 1e6);
  EXPECT_EQ(feed(long_one, 1.1 * kGuess, 1900), 0);
  EXPECT_EQ(feed(long_one, 1.1 * kGuess, 100), 1);
  LossWatch short_run = watch_for(469, 469);
  EXPECT_EQ(feed(short_run, 1.5, 100), 0);
  EXPECT_EQ(feed(short_run, kGuess, 300), 1);
}

TEST(LossWatch, LeavesALossThatFallsAlone) {
  LossWatch slow = watch_for(300, 3000);
  for (Step record = 0; record < 60; ++record) {
    EXPECT_EQ(feed(slow, 2.4 - 0.03 * static_cast<double>(record), 50), 0) << record;
  }
  LossWatch one_class({.classes = 1, .steps_per_epoch = 10, .total_steps = 5000});
  EXPECT_EQ(feed(one_class, 0.01, 5000), 0);
  LossWatch nothing({.steps_per_epoch = 10, .total_steps = 5000});
  EXPECT_EQ(feed(nothing, 50, 5000), 0);
}

// The loss of single batches jumps about that of guessing.
TEST(LossWatch, JudgesManyBatchesWhateverTheInterval) {
  LossWatch watch = watch_for(300, 3000);
  int warnings = 0;
  for (Step step = 0; step < 400; ++step) {
    warnings += feed(watch, step % 2 == 0 ? 2.1 : 2.5, 1, 1);
  }
  EXPECT_EQ(warnings, 1);
}

TEST(LossWatch, FarAboveGuessingIsAnErrorWhereWorkersMayDrift) {
  LossWatch drifting = watch_for(300, 3000, true);
  feed(drifting, 2.4, 100);
  EXPECT_THROW(feed(drifting, 4.1 * 2.4, 50), RunError);
  LossWatch together = watch_for(300, 3000);
  feed(together, 2.4, 100);
  EXPECT_NO_THROW(feed(together, 4.1 * 2.4, 50));
}

TEST(Trainer, SaysWhenNothingIsLearned) {
  for (const double lr : {0.0, 0.05}) {
    SmallTraining training({.lr = lr});
    training.plan.total_steps = 400;
    training.plan.checkpoint_every_steps = 1000;
    training.plan.watched_classes = kClasses;
    const TrainingOutcome outcome = training.run();
    EXPECT_EQ(outcome.warning.empty(), lr > 0) << outcome.warning;
    EXPECT_EQ(training.progress.notes.size(), lr > 0 ? 0U : 1U);
    std::size_t events = 0;
    for (const metrics::EventRecord& event : training.metrics.all<metrics::EventRecord>()) {
      events += event.event == "not-learning" ? 1 : 0;
    }
    EXPECT_EQ(events, lr > 0 ? 0U : 1U);
  }
}

}  // namespace
}  // namespace cohort::engine::test
