#include "engine/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

#include "core/failpoint.h"
#include "engine/small_training.h"

namespace cohort::engine::test {
namespace {

using testing::Contains;
using testing::HasSubstr;

std::vector<std::string> event_names(const metrics::MemorySink& metrics) {
  std::vector<std::string> names;
  for (const metrics::EventRecord& event : metrics.all<metrics::EventRecord>())
    names.push_back(event.event);
  return names;
}

std::optional<Step> best_in(const storage::CheckpointStore& store) {
  const auto best = store.load_best();
  return best ? std::optional<Step>(best->step) : std::nullopt;
}

TEST(Trainer, TakesExactlyThePlannedSteps) {
  for (const Step steps : {1, 7, 10, 14}) {  // an epoch has 7
    SmallTraining training;
    training.plan.total_steps = steps;
    const TrainingOutcome outcome = training.run();
    EXPECT_EQ(outcome.reason, StopReason::kFinished);
    EXPECT_EQ(outcome.steps, steps);
    EXPECT_EQ(outcome.steps_now, steps);
    EXPECT_EQ(training.replica.updates(), steps);
    EXPECT_TRUE(training.progress.ended);
  }
}

TEST(Trainer, LearnsAndRemembersTheBestEvaluation) {
  SmallTraining training;
  training.plan.total_steps = 140;
  training.plan.eval_every_epochs = 1;
  const TrainingOutcome outcome = training.run();
  ASSERT_TRUE(outcome.best && outcome.last);
  EXPECT_GT(outcome.best->top1, 0.8);
  const auto evaluations = training.metrics.all<metrics::EvaluationRecord>();
  EXPECT_EQ(evaluations.size(), 20U);
  const auto best =
      std::max_element(evaluations.begin(), evaluations.end(),
                       [](const metrics::EvaluationRecord& a, const metrics::EvaluationRecord& b) {
                         return a.top1 < b.top1;
                       });
  EXPECT_EQ(outcome.best->top1, best->top1);
  EXPECT_EQ(outcome.best_step, best->step);  // the first of equals
  EXPECT_EQ(outcome.last->top1, evaluations.back().top1);
}

TEST(Trainer, StopsAtTheTargetAccuracy) {
  storage::test::TemporaryFolder folder;
  storage::CheckpointStore store(folder.path(), 2);
  SmallTraining training;
  training.plan.total_steps = 1000;
  training.plan.eval_every_epochs = 1;
  training.plan.target_accuracy = 0.8;
  const TrainingOutcome outcome = training.run(&store);
  EXPECT_EQ(outcome.reason, StopReason::kTargetReached);
  EXPECT_LT(outcome.steps, 1000);
  EXPECT_EQ(outcome.steps % 7, 0);
  EXPECT_GE(outcome.last->top1, 0.8);
  EXPECT_EQ(store.load_latest({})->step, outcome.steps);
  EXPECT_EQ(best_in(store), outcome.steps);
  for (const metrics::EvaluationRecord& earlier :
       training.metrics.all<metrics::EvaluationRecord>()) {
    EXPECT_EQ(earlier.top1 >= 0.8, earlier.step == outcome.steps);
  }
}

TEST(Trainer, WhenToldToStopFinishesTheStepAndSaves) {
  storage::test::TemporaryFolder folder;
  storage::CheckpointStore store(folder.path(), 2);
  SmallTraining training;
  training.progress.on_step = [&](Step done) { training.stop = done == 17; };
  const TrainingOutcome outcome = training.run(&store);
  EXPECT_EQ(outcome.reason, StopReason::kInterrupted);
  EXPECT_EQ(outcome.steps, 17);
  EXPECT_EQ(store.load_latest({})->step, 17);
  EXPECT_FALSE(outcome.last);  // nobody waits for an evaluation
  EXPECT_THAT(event_names(training.metrics), Contains("interrupt"));
}

TEST(Trainer, ToldToStopAfterTheLastStepSavesItAndLeavesTheEvaluationToResume) {
  storage::test::TemporaryFolder folder;
  storage::CheckpointStore store(folder.path(), 2);
  SmallTraining training;
  training.progress.on_step = [&](Step done) { training.stop = done == 40; };
  const TrainingOutcome outcome = training.run(&store);
  EXPECT_EQ(outcome.reason, StopReason::kInterrupted);
  EXPECT_EQ(store.load_latest({})->step, 40);
  EXPECT_FALSE(outcome.last);
}

TEST(Trainer, RecordsCoverEveryStepOnceWithTimesThatAddUp) {
  SmallTraining training;
  training.plan.eval_every_epochs = 1;
  const Clock::time_point start = Clock::now();
  const TrainingOutcome outcome = training.run();
  const double wall = seconds_between(start, Clock::now());
  Step covered = 0;
  std::int64_t samples = 0;
  double time = 0;
  for (const metrics::StepRecord& record : training.metrics.all<metrics::StepRecord>()) {
    covered += record.steps;
    samples += record.samples;
    EXPECT_EQ(record.step, covered);
    EXPECT_DOUBLE_EQ(record.epoch, static_cast<double>(covered) / 7);
    EXPECT_GE(record.time_seconds, time);
    time = record.time_seconds;
    for (const double part : {record.data_seconds, record.compute_seconds, record.exchange_seconds,
                              record.update_seconds}) {
      EXPECT_GE(part, 0);
    }
    EXPECT_GT(record.compute_seconds, 0);
    EXPECT_TRUE(record.top1 >= 0 && record.top1 <= record.top5 && record.top5 <= 1);
    EXPECT_EQ(record.lr, 0.05);
  }
  EXPECT_EQ(covered, 40);
  EXPECT_EQ(samples, 5 * 52 + 5 * 8);  // five whole epochs and five full batches
  EXPECT_EQ(outcome.samples_now, samples);
  const double parts = outcome.times.total() + outcome.evaluation_seconds;
  EXPECT_LE(parts, wall);
  EXPECT_GT(parts, 0.5 * wall);
  EXPECT_LE(outcome.first_step_seconds, wall);
}

// What the trainer measures is where the time goes, not where it is easy to measure.
TEST(Trainer, AccountsForTimeSpentWaitingForData) {
  class SlowDataset final : public data::Dataset {
   public:
    std::int64_t size() const override { return images_.size(); }
    data::SampleShape shape() const override { return images_.shape(); }
    const std::vector<std::string>& class_names() const override { return images_.class_names(); }
    std::int64_t label(std::int64_t index) const override { return images_.label(index); }
    void read(std::int64_t index, std::uint64_t augmentation, std::span<float> out) const override {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));  // stands for a slow disk
      images_.read(index, augmentation, out);
    }

   private:
    data::ArrayDataset images_ = small_images(52);
  };
  SmallTraining training;
  const SlowDataset slow;
  training.plan.total_steps = 7;
  training.plan.loader_threads = 0;
  Trainer trainer({.model = *training.model,
                   .replica = training.replica,
                   .method = *training.method,
                   .schedule = training.schedule,
                   .train = slow,
                   .order = training.order,
                   .outlets = {&training.metrics, &training.progress}},
                  training.plan);
  EXPECT_GT(trainer.run(training.stop).times.data_seconds, 52 * 0.002);
}

TEST(Trainer, MarksTheBestAlsoWhenItsStepIsAlreadySaved) {
  storage::test::TemporaryFolder folder;
  storage::CheckpointStore store(folder.path(), 2);
  SmallTraining training;  // evaluates at the end only, after the checkpoint of step 40
  training.run(&store);
  EXPECT_EQ(best_in(store), 40);
  EXPECT_TRUE(store.load_best()->extra.at("engine").contains("best"));
}

TEST(Trainer, GoesOnAfterACheckpointThatFailed) {
#ifndef COHORT_FAILPOINTS
  GTEST_SKIP() << "built without failpoints";
#endif
  storage::test::TemporaryFolder folder;
  storage::CheckpointStore store(folder.path(), 10);
  SmallTraining training;
  training.progress.on_step = [&](Step done) {
    if (done == 20) set_failpoints("file.write=error@1");
    if (done == 21) set_failpoints("");
  };
  const TrainingOutcome outcome = training.run(&store);
  set_failpoints("");
  EXPECT_EQ(outcome.steps, 40);
  std::vector<Step> saved;
  for (const storage::StoredCheckpoint& checkpoint : store.list()) saved.push_back(checkpoint.step);
  EXPECT_THAT(saved, testing::ElementsAre(40, 30, 10));
  ASSERT_EQ(training.progress.notes.size(), 1U);
  EXPECT_THAT(training.progress.notes.front(), HasSubstr("step 20"));
  EXPECT_THAT(event_names(training.metrics), Contains("checkpoint-failed"));
}

TEST(Trainer, FailsWhenTheLastCheckpointCannotBeSaved) {
#ifndef COHORT_FAILPOINTS
  GTEST_SKIP() << "built without failpoints";
#endif
  for (const bool interrupted : {false, true}) {
    storage::test::TemporaryFolder folder;
    storage::CheckpointStore store(folder.path(), 10);
    SmallTraining training;
    training.progress.on_step = [&](Step done) {
      if (done == 33) set_failpoints("file.write=error");
      training.stop = interrupted && done == 34;
    };
    EXPECT_THROW(training.run(&store), FileError);
    set_failpoints("");
    EXPECT_EQ(store.load_latest({})->step, 30);
  }
}

TEST(Trainer, ADivergedEvaluationCanBeResumed) {
  storage::test::TemporaryFolder folder;
  storage::CheckpointStore store(folder.path(), 2);
  {
    SmallTraining training;
    training.plan.total_steps = 10;
    training.replica.statistics().fill_(std::numeric_limits<float>::quiet_NaN());
    training.run(&store);  // the loss in training is a number, that of the evaluation is not
  }
  SmallTraining again;
  again.plan.total_steps = 12;
  EXPECT_EQ(again.run(&store, /*resume=*/true).steps, 12);
}

}  // namespace
}  // namespace cohort::engine::test
