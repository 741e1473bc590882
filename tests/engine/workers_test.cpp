// Many workers, one gradient: a run of N workers is the run of one worker with their whole batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/patience.h"
#include "engine/worker_runs.h"

namespace cohort::engine::test {
namespace {

using testing::HasSubstr;

struct MethodAndWorkers {
  std::string method;
  int workers;
};

class ManyWorkers : public testing::TestWithParam<MethodAndWorkers> {
 protected:
  // The same run by these workers and by one; `change` sets what differs from small_run().
  void expect_equal_to_one(std::int64_t batch_of_all,
                           const std::function<void(config::RunConfig&)>& change) const {
    config::RunConfig alone = small_run(1, batch_of_all);
    config::RunConfig many = small_run(GetParam().workers, batch_of_all, GetParam().method);
    change(alone);
    change(many);
    const RunResult expected = run_group(alone);
    const RunResult found = run_group(many);
    expect_equal_replicas(found);
    EXPECT_LT(distance(found.parameters[0], expected.parameters[0]), 1e-5);
    EXPECT_GT(found.outcomes[0].steps, 0);
    for (const TrainingOutcome& outcome : found.outcomes) {
      EXPECT_EQ(outcome.steps, expected.outcomes[0].steps);
      EXPECT_EQ(outcome.samples_now, expected.outcomes[0].samples_now);
      EXPECT_EQ(outcome.reason, StopReason::kFinished);
      ASSERT_TRUE(outcome.last);
      EXPECT_EQ(outcome.last->samples, 37);
      EXPECT_NEAR(outcome.last->loss, expected.outcomes[0].last->loss, 1e-5);
      EXPECT_EQ(outcome.last->loss, found.outcomes[0].last->loss) << "all know the same";
    }
  }
};

INSTANTIATE_TEST_SUITE_P(
    Sizes, ManyWorkers,
    testing::Values(MethodAndWorkers{"all-reduce", 2}, MethodAndWorkers{"all-reduce", 3},
                    MethodAndWorkers{"all-reduce", 4}, MethodAndWorkers{"all-reduce", 8},
                    MethodAndWorkers{"data-parallel", 2}, MethodAndWorkers{"data-parallel", 3},
                    MethodAndWorkers{"data-parallel", 4}, MethodAndWorkers{"data-parallel", 8}),
    [](const auto& each) {
      return (each.param.method == "all-reduce" ? "all_reduce_" : "data_parallel_") +
             std::to_string(each.param.workers);
    });

TEST_P(ManyWorkers, EqualOneWithTheWholeBatch) {
  // 101 = 4 * 24 + 5: the last batch is uneven, and some of eight workers get none of it.
  expect_equal_to_one(24, [](config::RunConfig&) {});
}

TEST_P(ManyWorkers, EqualOneWithASingleSampleLeftOver) {
  expect_equal_to_one(24, [](config::RunConfig& config) { config.train_size = 97; });
}

TEST_P(ManyWorkers, EqualOneWithEverySettingOfTheUpdate) {
  expect_equal_to_one(24, [](config::RunConfig& config) {
    config.optimizer = "adam";
    config.lr = 0.001;
    config.iterations = 30;
  });
  expect_equal_to_one(24, [](config::RunConfig& config) {
    config.weight_decay = 0.01;
    config.nesterov = true;
    config.clip_norm = 0.1;
    config.label_smoothing = 0.1;
    config.iterations = 30;
  });
}

TEST_P(ManyWorkers, EqualOneThatAccumulates) {
  expect_equal_to_one(24, [](config::RunConfig& config) {
    config.accumulate = 3;
    config.iterations = 20;
  });
}

TEST_P(ManyWorkers, EqualOneByEpochsUnderASchedule) {
  expect_equal_to_one(24, [](config::RunConfig& config) {
    config.iterations = 0;
    config.epochs = 4;
    config.schedule = "cosine";
    config.warmup_epochs = 1;
    config.shuffle = false;
    config.drop_last = true;
  });
}

TEST_P(ManyWorkers, GiveTheSameBitsTwice) {
  config::RunConfig config = small_run(GetParam().workers, 24, GetParam().method);
  config.iterations = 20;
  EXPECT_TRUE(run_group(config).parameters[0].equal(run_group(config).parameters[0]));
}

TEST(Workers, DivideABatchThatDoesNotDivide) {
  // data-parallel: 20 over 3 is 7, 7 and 6.
  const RunResult alone = run_group(small_run(1, 20));
  const RunResult three = run_group(small_run(3, 20, "data-parallel"));
  EXPECT_LT(distance(three.parameters[0], alone.parameters[0]), 1e-5);
}

TEST(Workers, BucketSizesDoNotChangeTheBits) {
  config::RunConfig config = small_run(3, 24);
  config.iterations = 30;
  const at::Tensor expected = run_group(config).parameters[0];
  for (const std::string bucket : {"0.001", "0.02", "25", "auto"}) {
    config.bucket = bucket;
    EXPECT_TRUE(run_group(config).parameters[0].equal(expected)) << bucket;
  }
}

config::RunConfig convolutional(int workers, std::int64_t batch_of_all) {
  config::RunConfig config = small_run(workers, batch_of_all);
  config.model = "resnet8";
  config.synthetic_shape = "3x8x8";
  config.iterations = 12;
  config.lr = 0.01;
  return config;
}

TEST(SynchronisedStatistics, EqualTheWholeBatchAlsoWhereWorkersHaveNothing) {
  for (const std::int64_t samples : {101, 97}) {
    config::RunConfig alone = convolutional(1, 24);
    alone.train_size = samples;
    const RunResult expected = run_group(alone);
    for (const int workers : {2, 3, 8}) {
      config::RunConfig many = convolutional(workers, 24);
      many.train_size = samples;
      many.batch_norm = "synchronised";
      const RunResult found = run_group(many);
      expect_equal_replicas(found);
      EXPECT_LT(distance(found.parameters[0], expected.parameters[0]), 1e-4) << workers;
      EXPECT_LT(distance(found.statistics[0], expected.statistics[0]), 1e-4) << workers;
    }
  }
}

TEST(SynchronisedStatistics, NeedAllWorkersInEveryPassOfAnUnevenBatch) {
  // 101 = 3 * 32 + 5: three samples and two, in passes of two; with eight workers some have none.
  for (const int workers : {2, 8}) {
    config::RunConfig config = convolutional(workers, 16);
    config.accumulate = 2;
    config.batch_norm = "synchronised";
    config.peer_timeout = 10;
    config.iterations = 9;
    const RunResult found = run_group(config);
    expect_equal_replicas(found);
    EXPECT_EQ(found.outcomes[0].steps, 9);
    EXPECT_TRUE(found.statistics[0].isfinite().all().item<bool>());
  }
}

TEST(Statistics, AreEqualOnAllWorkersAfterwardsByAnyPolicy) {
  for (const std::string policy : {"rank-0", "mean"}) {
    config::RunConfig config = convolutional(3, 24);
    config.batch_norm = policy;
    const RunResult result = run_group(config);
    expect_equal_replicas(result);
    EXPECT_TRUE(result.parameters[0].equal(run_group(config).parameters[0]));
  }
}

TEST(Evaluation, CountsEverySampleOnceHoweverManyWorkersShareIt) {
  config::RunConfig config = small_run(1, 24);
  config.iterations = 1;
  for (const std::int64_t samples : {1, 2, 7, 37, 100}) {
    config.test_size = samples;
    const auto data = open_data(config, {});
    Evaluation alone;
    for (const int workers : {1, 2, 3, 5, 8}) {
      auto members = memberships(workers);
      config.method = workers == 1 ? "local" : "all-reduce";
      config.workers = workers;
      config.batch = 8;
      std::vector<Evaluation> found(static_cast<std::size_t>(workers));
      run_workers(config, *data, members, nullptr, [&](Worker& worker) {
        worker.method().start(worker.replica());
        found[static_cast<std::size_t>(worker.member().rank)] =
            evaluate(worker.model(), *data->test, worker.options().evaluation, worker.group());
      });
      if (workers == 1) alone = found[0];
      for (const Evaluation& each : found) {
        EXPECT_EQ(each.samples, samples);
        EXPECT_EQ(each.top1, alone.top1);
        EXPECT_EQ(each.top5, alone.top5);
        EXPECT_NEAR(each.loss, alone.loss, 1e-6 * alone.loss);
        EXPECT_EQ(each.loss, found[0].loss);
      }
    }
  }
}

TEST(Records, TellOfEveryWorkerWhatItDidAndSent) {
  config::RunConfig config = small_run(3, 24);
  config.train_size = 100;
  config.iterations = 25;
  config.checkpoint_every = 1000;  // which would make a record too
  const RunResult result = run_group(config);
  ASSERT_EQ(result.records.size(), 3U * 3U);  // at 10, 20 and the end
  std::int64_t samples = 0;
  for (std::size_t i = 0; i < result.records.size(); ++i) {
    const metrics::StepRecord& record = result.records[i];
    EXPECT_EQ(record.rank, static_cast<Rank>(i % 3));
    EXPECT_EQ(record.step, i < 3 ? 10 : i < 6 ? 20 : 25);
    EXPECT_EQ(record.steps, i < 6 ? 10 : 5);
    EXPECT_GT(record.bytes_sent, 0U);
    EXPECT_GT(record.bytes_received, 0U);
    EXPECT_GE(record.late_seconds, record.late_data_seconds);
    samples += record.samples;
  }
  EXPECT_EQ(samples, 5 * 100);  // five epochs of five steps, whoever had them
  ASSERT_EQ(result.evaluations.size(), 1U);
  const auto& late = result.outcomes[0].late;
  ASSERT_EQ(late.size(), 3U);
  EXPECT_EQ(late[0].steps_last + late[1].steps_last + late[2].steps_last, 25);
}

// Reads slowly.
class SlowDataset final : public data::Dataset {
 public:
  explicit SlowDataset(std::unique_ptr<data::Dataset> inner) : inner_(std::move(inner)) {}
  std::int64_t size() const override { return inner_->size(); }
  data::SampleShape shape() const override { return inner_->shape(); }
  const std::vector<std::string>& class_names() const override { return inner_->class_names(); }
  std::int64_t label(std::int64_t index) const override { return inner_->label(index); }
  void read(std::int64_t index, std::uint64_t augmentation, std::span<float> out) const override {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    inner_->read(index, augmentation, out);
  }

 private:
  std::unique_ptr<data::Dataset> inner_;
};

TEST(Records, NameTheWorkerThatIsLateAndItsData) {
  config::RunConfig config = small_run(3, 24);
  config.iterations = 8;
  config.train_size = 96;
  config.loader_threads = 0;
  const auto data = open_data(config, {});
  const auto slow = open_data(config, {});
  slow->train = std::make_unique<SlowDataset>(std::move(slow->train));
  auto members = memberships(3);
  std::vector<methods::Lateness> late;
  run_workers(config, *data, members, nullptr, [&](Worker& worker) {
    metrics::MemorySink sink;
    RememberedProgress progress;
    TrainerOptions options = worker.options();
    options.save_checkpoints = false;
    const data::DataSplits& own = worker.member().rank == 2 ? *slow : *data;
    const auto outcome = Trainer(worker.parts(own, sink, progress), options).run(false);
    if (worker.is_first()) late = outcome.late;
  });
  ASSERT_EQ(late.size(), 3U);
  EXPECT_GE(late[2].steps_last, 6);
  EXPECT_GT(late[2].seconds, 6 * 8 * 0.003 * 0.5);
  EXPECT_GT(late[2].data_seconds, 0.7 * late[2].seconds);
}

TEST(Stopping, IsAgreedUponWhoeverIsTold) {
  config::RunConfig config = small_run(3, 24);
  config.iterations = 100000;
  // Only the last worker's flag is ever set, and by itself.
  std::atomic<bool> stop = false;
  std::atomic<bool> never = false;
  const auto data = open_data(config, {});
  auto members = memberships(3);
  std::vector<TrainingOutcome> outcomes(3);
  run_workers(config, *data, members, nullptr, [&](Worker& worker) {
    const bool told = worker.member().rank == 2;
    RememberedProgress progress;
    progress.on_step = [&](Step done) {
      if (told && done == 13) stop = true;
    };
    metrics::MemorySink sink;
    TrainerOptions options = worker.options();
    options.save_checkpoints = false;
    Trainer trainer(worker.parts(*data, sink, progress), options);
    outcomes[static_cast<std::size_t>(worker.member().rank)] = trainer.run(told ? stop : never);
  });
  for (const TrainingOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.reason, StopReason::kInterrupted);
    EXPECT_EQ(outcome.steps, 13);
  }
}

TEST(Stopping, OnATargetIsTheSameForAll) {
  config::RunConfig config = small_run(3, 24);
  config.iterations = 5000;
  config.eval_every = 1;
  config.target_accuracy = 0.4;
  config.lr = 0.1;
  const RunResult result = run_group(config);
  for (const TrainingOutcome& outcome : result.outcomes) {
    EXPECT_EQ(outcome.reason, StopReason::kTargetReached);
    EXPECT_EQ(outcome.steps, result.outcomes[0].steps);
    EXPECT_EQ(outcome.best->top1, result.outcomes[0].best->top1);
  }
  EXPECT_LT(result.outcomes[0].steps, 5000);
}

TEST(AWorkerThatThrows, EndsAllOthersWithItsMessage) {
  for (const Rank failing : {0, 2}) {
    config::RunConfig config = small_run(3, 24);
    config.iterations = 100000;
    config.peer_timeout = 600;
    const auto data = open_data(config, {});
    auto members = memberships(3);
    std::vector<std::string> heard(3);
    const auto start = Clock::now();
    try {
      run_workers(config, *data, members, nullptr, [&](Worker& worker) {
        const Rank rank = worker.member().rank;
        RememberedProgress progress;
        progress.on_step = [&](Step done) {
          if (rank == failing && done == 7) throw RunError("out of coffee");
        };
        metrics::MemorySink sink;
        TrainerOptions options = worker.options();
        options.save_checkpoints = false;
        try {
          Trainer(worker.parts(*data, sink, progress), options).run(false);
        } catch (const std::exception& error) {
          heard[static_cast<std::size_t>(rank)] = error.what();
          throw;
        }
      });
      FAIL() << "nothing was thrown";
    } catch (const RunError& error) {
      EXPECT_THAT(error.what(), HasSubstr("out of coffee"));  // the cause, not its echo
    }
    EXPECT_LT(seconds_between(start, Clock::now()), patiently(10));
    for (const std::string& message : heard) EXPECT_THAT(message, HasSubstr("out of coffee"));
    EXPECT_THAT(heard[1], HasSubstr("rank " + std::to_string(failing)));
    EXPECT_THAT(heard[1], HasSubstr("step"));
  }
}

TEST(AWorkerThatThrows, WhileItIsBuiltEndsAllOthersToo) {
  config::RunConfig config = small_run(2, 24);
  const auto data = open_data(config, {});
  auto members = memberships(2);
  config.init = "/nowhere/weights.safetensors";  // only the first worker reads it
  const auto start = Clock::now();
  EXPECT_THROW(run_workers(config, *data, members, nullptr,
                           [](Worker& worker) { worker.method().start(worker.replica()); }),
               FileError);
  EXPECT_LT(seconds_between(start, Clock::now()), patiently(10));
}

}  // namespace
}  // namespace cohort::engine::test
