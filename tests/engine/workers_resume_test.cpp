// Runs of many workers that are saved and go on, with as many workers or with others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/counting_dataset.h"
#include "engine/worker_runs.h"

namespace cohort::engine::test {
namespace {

using testing::AllOf;
using testing::Each;
using testing::SizeIs;

void expect_same_bits(const RunResult& found, const RunResult& expected) {
  EXPECT_TRUE(found.parameters[0].equal(expected.parameters[0]));
  EXPECT_TRUE(found.statistics[0].equal(expected.statistics[0]));
  EXPECT_TRUE(found.momentum[0].equal(expected.momentum[0]));
  EXPECT_EQ(found.outcomes[0].steps, expected.outcomes[0].steps);
  expect_equal_replicas(found);
}

// Stopped after `first` steps and resumed equals never stopped.
void expect_exact_resume(config::RunConfig config, Step first) {
  const RunResult straight = run_group(config);
  const storage::test::TemporaryFolder folder;
  storage::CheckpointStore store(folder.path(), 2);
  const Step all = config.iterations;
  config.iterations = first;
  run_group(config, {.store = &store});
  config.iterations = all;
  expect_same_bits(run_group(config, {.store = &store, .resume = true}), straight);
}

config::RunConfig with_batch_norm(int workers, const std::string& method) {
  config::RunConfig config = small_run(workers, 24, method);
  config.model = "resnet8";
  config.synthetic_shape = "3x8x8";
  config.lr = 0.01;
  config.iterations = 17;
  return config;
}

TEST(ResumedWorkers, GoOnExactlyAsTheyWouldHave) {
  for (const std::string method : {"all-reduce", "data-parallel"}) {
    for (const int workers : {2, 3}) {
      SCOPED_TRACE(method + " " + std::to_string(workers));
      expect_exact_resume(with_batch_norm(workers, method), 7);
    }
  }
}

TEST(ResumedWorkers, WithOwnModelsOrMemoriesGoOnExactly) {
  for (const std::string method : {"d-psgd", "choco", "dcd", "ecd", "deep-squeeze", "ef-sign",
                                   "sign-sgd", "dgc", "power-sgd"}) {
    SCOPED_TRACE(method);
    config::RunConfig config = with_batch_norm(4, method);
    if (method == "choco" || method == "deep-squeeze") config.consensus_stepsize = "0.1";
    if (method == "choco" || method == "deep-squeeze") config.compressor = "sign";
    if (method == "choco") config.estimates_start = "zero";
    if (method == "dcd" || method == "ecd") config.compressor = "qsgd";
    if (method == "dgc") config.compressor = "top-k";
    if (method == "sign-sgd") config.lr = 1e-4;
    // Step 8 is in the middle of three steps alone.
    methods::set_setting(config, "average-every",
                         Step{method == "choco"     ? 2
                              : method == "ef-sign" ? 3
                                                    : 1});
    const RunResult straight = run_group(config);
    const storage::test::TemporaryFolder folder;
    storage::CheckpointStore store(folder.path(), 2);
    const Step all = config.iterations;
    config.iterations = 8;
    run_group(config, {.store = &store});
    config.iterations = all;
    const RunResult resumed = run_group(config, {.store = &store, .resume = true});
    for (std::size_t rank = 0; rank < 4; ++rank) {
      EXPECT_TRUE(resumed.parameters[rank].equal(straight.parameters[rank])) << rank;
      EXPECT_TRUE(resumed.statistics[rank].equal(straight.statistics[rank])) << rank;
      EXPECT_TRUE(resumed.momentum[rank].equal(straight.momentum[rank])) << rank;
    }
  }
}

TEST(ResumedWorkers, GoOnExactlyWithSynchronisedStatisticsAndAdam) {
  config::RunConfig config = with_batch_norm(3, "all-reduce");
  config.batch_norm = "synchronised";
  config.optimizer = "adam";
  config.lr = 0.001;
  expect_exact_resume(config, 9);
}

TEST(ResumedWorkers, GoOnExactlyWhenTheyWereInterrupted) {
  const config::RunConfig config = with_batch_norm(2, "all-reduce");
  const RunResult straight = run_group(config);
  const storage::test::TemporaryFolder folder;
  storage::CheckpointStore store(folder.path(), 2);
  std::atomic<bool> stop = false;
  const RunExtras extras{
      .store = &store, .on_step = [&](Step done) { stop = done == 6; }, .stop = &stop};
  EXPECT_EQ(run_group(config, extras).outcomes[0].reason, StopReason::kInterrupted);
  expect_same_bits(run_group(config, {.store = &store, .resume = true}), straight);
}

TEST(ResumedLocalSteps, StopOnlyWhereTheModelsAreAveraged) {
  config::RunConfig config = small_run(3, 24);
  methods::set_setting(config, "average-every", Step{4});
  config.iterations = 22;
  config.checkpoint_every = 8;
  const RunResult straight = [&] {
    const storage::test::TemporaryFolder folder;
    storage::CheckpointStore store(folder.path(), 2);
    return run_group(config, {.store = &store});
  }();
  for (const Step told_at : {1, 8, 13}) {
    const storage::test::TemporaryFolder folder;
    storage::CheckpointStore store(folder.path(), 2);
    std::atomic<bool> stop = false;
    const RunExtras extras{.store = &store,
                           .on_step = [&](Step done) { stop = stop || done == told_at; },
                           .stop = &stop};
    const RunResult first = run_group(config, extras);
    EXPECT_EQ(first.outcomes[0].steps, (told_at + 3) / 4 * 4);
    expect_same_bits(run_group(config, {.store = &store, .resume = true}), straight);
  }
}

TEST(OtherWorkers, SeeTheRestOfTheEpochOnceAndKeepToTheSchedule) {
  for (const int later : {2, 3, 1, 8}) {
    for (const Step saved_at : {2, 6}) {  // in the first and in the second of three epochs
      SCOPED_TRACE(std::to_string(later) + " workers after step " + std::to_string(saved_at));
      config::RunConfig config = small_run(4, 24);  // 6 each, 5 steps an epoch
      config.record_every = 1;
      config.schedule = "cosine";
      config.epochs = 3;
      config.iterations = 0;
      const auto data = open_data(config, {});
      auto counting = std::make_unique<CountingDataset>(std::move(data->train));
      const CountingDataset& counted = *counting;
      data->train = std::move(counting);
      const storage::test::TemporaryFolder folder;
      storage::CheckpointStore store(folder.path(), 2);
      config.loader_threads = 0;  // reads nothing ahead that is not trained on
      std::atomic<bool> stop = false;
      const RunResult first =
          run_group(config, {.store = &store,
                             .data = data.get(),
                             .on_step = [&](Step done) { stop = stop || done == saved_at; },
                             .stop = &stop});
      ASSERT_EQ(first.outcomes[0].steps, saved_at);

      config.workers = later;  // 6 each as before: other steps
      config.method = later == 1 ? "local" : "all-reduce";
      const RunResult rest =
          run_group(config, {.store = &store, .resume = true, .data = data.get()});
      EXPECT_THAT(counted.reads(), AllOf(SizeIs(101), Each(3)));

      // The rest of the epoch and two or one whole ones, in steps of the new size.
      const std::int64_t left = 101 - (saved_at % 5) * 24;
      const std::int64_t batch = 6 * later;
      const auto steps = [&](std::int64_t samples) { return (samples + batch - 1) / batch; };
      const Step expected = saved_at + steps(left) + (saved_at < 5 ? 2 : 1) * steps(101);
      for (const TrainingOutcome& outcome : rest.outcomes) {
        EXPECT_EQ(outcome.steps, expected);
        EXPECT_NEAR(outcome.epochs, 3, 1e-9);
        EXPECT_EQ(outcome.samples_now, 3 * 101 - (saved_at / 5) * 101 - (saved_at % 5) * 24);
      }
      EXPECT_NEAR(rest.records.back().epoch, 3, 1e-9);
      double rate = first.records.back().lr;
      double epoch = first.records.back().epoch;
      for (const metrics::StepRecord& record : rest.records) {
        if (record.rank != 0) continue;
        EXPECT_LE(record.lr, rate);
        EXPECT_GE(record.epoch, epoch);
        rate = record.lr;
        epoch = record.epoch;
        const double wanted = 0.05 * 0.5 * (1 + std::cos(M_PI * record.epoch / 3));
        EXPECT_GE(record.lr, wanted - 1e-9) << "of the step before this one's end";
      }
    }
  }
}

TEST(OtherWorkers, WithTheSameBatchOfAllGoOnAsOneRun) {
  const config::RunConfig before = small_run(4, 24);
  const storage::test::TemporaryFolder folder;
  storage::CheckpointStore store(folder.path(), 2);
  config::RunConfig first = before;
  first.iterations = 23;
  run_group(first, {.store = &store});
  const RunResult rest = run_group(small_run(2, 24), {.store = &store, .resume = true});
  EXPECT_LT(distance(rest.parameters[0], run_group(before).parameters[0]), 1e-5);
}

}  // namespace
}  // namespace cohort::engine::test
