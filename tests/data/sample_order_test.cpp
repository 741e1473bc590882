#include "data/sample_order.h"

#include <algorithm>
#include <set>
#include <thread>

#include "core/error.h"
#include "data/support.h"

namespace cohort::test {
namespace {

SampleOrderOptions options_of(std::int64_t samples, std::int64_t batch, Rank rank, int workers) {
  SampleOrderOptions options;
  options.samples = samples;
  options.batch = batch;
  options.rank = rank;
  options.workers = workers;
  options.seed = 17;
  return options;
}

// The batches of all workers at one step, one after the other.
std::vector<SampleRef> global_batch(std::int64_t samples, std::int64_t batch, int workers,
                                    Step step) {
  std::vector<SampleRef> all;
  for (Rank rank = 0; rank < workers; ++rank) {
    const SampleOrder order(options_of(samples, batch, rank, workers));
    for (const SampleRef& ref : order.batch(step)) all.push_back(ref);
  }
  return all;
}

TEST(SampleOrder, TheGlobalOrderIsTheSameForEveryNumberOfWorkers) {
  for (Step step = 0; step < 25; ++step) {
    const auto alone = global_batch(100, 12, 1, step);
    for (const int workers : {2, 3, 4, 6, 12}) {
      EXPECT_EQ(global_batch(100, 12 / workers, workers, step), alone)
          << workers << " workers, step " << step;
    }
  }
}

TEST(SampleOrder, EverySampleComesOnceInEachEpochAndEpochsDiffer) {
  std::vector<std::vector<std::int64_t>> epochs;
  const std::int64_t steps = SampleOrder(options_of(103, 5, 0, 4)).steps_per_epoch();
  EXPECT_EQ(steps, 6);
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<std::int64_t> seen;
    for (Step step = epoch * steps; step < (epoch + 1) * steps; ++step) {
      for (const SampleRef& ref : global_batch(103, 5, 4, step)) seen.push_back(ref.index);
    }
    epochs.push_back(seen);
    std::sort(seen.begin(), seen.end());
    ASSERT_EQ(seen.size(), 103U);
    for (std::int64_t i = 0; i < 103; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
}

TEST(SampleOrder, TheLastGlobalBatchIsDividedEvenly) {
  // 103 = 5 * 20 + 3, and 106 = 5 * 20 + 6.
  const auto sizes = [](std::int64_t samples) {
    std::vector<std::size_t> all;
    for (Rank r = 0; r < 4; ++r) {
      all.push_back(SampleOrder(options_of(samples, 5, r, 4)).batch(5).size());
    }
    return all;
  };
  EXPECT_EQ(sizes(103), (std::vector<std::size_t>{1, 1, 1, 0}));
  EXPECT_EQ(sizes(106), (std::vector<std::size_t>{2, 2, 1, 1}));
  SampleOrderOptions dropping = options_of(106, 5, 0, 4);
  dropping.drop_last = true;
  const SampleOrder order(dropping);
  EXPECT_EQ(order.steps_per_epoch(), 5);
  EXPECT_EQ(order.batch(5).size(), 5U);
}

TEST(SampleOrder, AugmentationKeysNeverRepeat) {
  const SampleOrder order(options_of(50, 7, 0, 1));
  std::set<std::uint64_t> keys;
  std::size_t count = 0;
  for (Step step = 0; step < 5 * order.steps_per_epoch(); ++step) {
    for (const SampleRef& ref : order.batch(step)) {
      keys.insert(ref.augmentation);
      ++count;
    }
  }
  EXPECT_EQ(count, 250U);
  EXPECT_EQ(keys.size(), count);
}

TEST(SampleOrder, WithoutShufflingTheOrderIsThatOfTheDataSet) {
  SampleOrderOptions options = options_of(10, 4, 0, 1);
  options.shuffle = false;
  const SampleOrder order(options);
  EXPECT_EQ(order.batch(2).size(), 2U);
  EXPECT_EQ(order.batch(2)[0].index, 8);
  EXPECT_EQ(order.batch(3)[0].index, 0);
}

TEST(SampleOrder, APartitionIsWalkedByItsOwnerAlone) {
  SampleOrderOptions options = options_of(1000, 4, 1, 3);
  options.partition = {5, 17, 29, 31, 444, 7, 8, 9, 10, 2};
  const SampleOrder order(options);
  EXPECT_EQ(order.steps_per_epoch(), 84);  // of all three together over all samples
  for (int pass = 0; pass < 3; ++pass) {
    std::set<std::int64_t> seen;
    for (Step step = 3 * pass; step < 3 * (pass + 1); ++step) {
      for (const SampleRef& ref : order.batch(step)) seen.insert(ref.index);
    }
    EXPECT_EQ(seen, std::set<std::int64_t>(options.partition.begin(), options.partition.end()));
  }
  // Two workers that both own everything still see it in different orders.
  options.rank = 2;
  EXPECT_NE(SampleOrder(options).batch(0), order.batch(0));
}

TEST(SampleOrder, AnyStepMayBeAskedForInAnyOrderFromAnyThread) {
  const SampleOrder order(options_of(60, 7, 0, 1));
  std::vector<std::vector<SampleRef>> expected;
  for (Step step = 0; step < 60; ++step) {
    expected.push_back(SampleOrder(options_of(60, 7, 0, 1)).batch(step));
  }
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const int step = (i * (2 * t + 7) + t) % 60;
        if (order.batch(step) != expected[static_cast<std::size_t>(step)]) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(SampleOrder, SenselessNumbersAreRefused) {
  EXPECT_THROW(SampleOrder(options_of(0, 4, 0, 1)), ConfigError);
  EXPECT_THROW(SampleOrder(options_of(10, 0, 0, 1)), ConfigError);
  EXPECT_THROW(SampleOrder(options_of(10, 4, 2, 2)), ConfigError);
  SampleOrderOptions dropping = options_of(10, 4, 0, 3);
  dropping.drop_last = true;
  EXPECT_THROW(SampleOrder{dropping}, ConfigError);
}

}  // namespace
}  // namespace cohort::test
