#include "data/sample_order.h"

#include <algorithm>
#include <memory>
#include <set>
#include <thread>

#include "core/error.h"
#include "data/support.h"

namespace cohort::data::test {
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

// One sitting: what all workers together see from where `start` stands, for at most `steps` steps.
struct Sitting {
  int workers;
  std::int64_t batch;
  Step steps;
};

// Goes through `epochs` epochs of `samples` in these sittings, the last one to the end, and checks
// that every sample comes once in every epoch (drop_last: at most once).
void expect_every_sample_once(std::int64_t samples, std::int64_t epochs, bool drop_last,
                              const std::vector<Sitting>& sittings) {
  std::vector<std::int64_t> seen;
  OrderStart start;
  std::set<std::uint64_t> keys;
  double epoch_before = 0;
  for (std::size_t i = 0; i < sittings.size(); ++i) {
    std::vector<std::unique_ptr<SampleOrder>> orders;
    for (Rank rank = 0; rank < sittings[i].workers; ++rank) {
      SampleOrderOptions options =
          options_of(samples, sittings[i].batch, rank, sittings[i].workers);
      options.drop_last = drop_last;
      options.start = start;
      orders.push_back(std::make_unique<SampleOrder>(options));
    }
    const SampleOrder& first = *orders[0];
    const Step end = first.steps_until(epochs);
    const bool last = i + 1 == sittings.size();
    const Step stop = last ? end : std::min(end, start.step + sittings[i].steps);
    // With larger batches nothing may be left of an epoch whose end is dropped.
    if (drop_last && first.epochs_ended_at(start.step) > 0) seen.clear();
    for (Step step = start.step; step < stop; ++step) {
      std::int64_t together = 0;
      for (const auto& order : orders) {
        const auto batch = order->batch(step);
        together += static_cast<std::int64_t>(batch.size());
        ASSERT_LE(static_cast<std::int64_t>(batch.size()), order->batch_size());
        ASSERT_LE(batch.size(), orders[0]->batch(step).size()) << "the first have the most";
        for (const SampleRef& ref : batch) {
          seen.push_back(ref.index);
          ASSERT_TRUE(keys.insert(ref.augmentation).second) << "two samples of one draw";
        }
      }
      ASSERT_EQ(together, first.samples_of_all(step));
      ASSERT_GT(together, 0);
      if (!drop_last) {
        ASSERT_GE(first.epochs_at(step) + 1e-12, epoch_before);
        epoch_before = first.epochs_at(step);
      }
      if (const std::int64_t ended = first.epochs_ended_at(step + 1); ended > 0) {
        ASSERT_NEAR(first.epochs_at(step + 1), static_cast<double>(ended), 1e-9);
        std::sort(seen.begin(), seen.end());
        ASSERT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end()) << "a sample twice";
        if (!drop_last) {
          ASSERT_EQ(static_cast<std::int64_t>(seen.size()), samples) << "a sample never";
        }
        seen.clear();
      }
    }
    start = first.place_at(stop);
    ASSERT_EQ(start.step, stop);
  }
  EXPECT_EQ(start.position, 0);
  EXPECT_EQ(start.epoch, epochs);
  if (!drop_last) {
    EXPECT_EQ(static_cast<std::int64_t>(keys.size()), samples * epochs);
  }
}

TEST(SampleOrder, OtherWorkersGoOnWithTheRestOfTheEpoch) {
  for (const std::int64_t samples : {53, 60}) {
    for (const bool drop_last : {false, true}) {
      for (const int before : {1, 2, 3, 4}) {
        for (const int after : {1, 2, 3, 4, 8}) {
          for (Step stop = 0; stop <= 30; ++stop) {
            SCOPED_TRACE(std::to_string(before) + " to " + std::to_string(after) + " after " +
                         std::to_string(stop) + " of " + std::to_string(samples));
            expect_every_sample_once(samples, 2, drop_last, {{before, 4, stop}, {after, 4, 0}});
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

TEST(SampleOrder, WorkersMayChangeAgainAndAgainWithinAnEpoch) {
  for (Step stop = 0; stop <= 12; ++stop) {
    for (Step later = 0; later <= 6; ++later) {
      expect_every_sample_once(101, 3, false, {{4, 5, stop}, {2, 7, later}, {3, 3, 2}, {1, 20, 0}});
      expect_every_sample_once(101, 3, true, {{4, 5, stop}, {2, 7, later}, {3, 3, 2}, {1, 20, 0}});
    }
  }
}

TEST(SampleOrder, GoingOnUnchangedIsTheSameOrder) {
  const SampleOrder whole(options_of(53, 4, 1, 3));
  for (Step stop = 0; stop < 20; ++stop) {
    SampleOrderOptions options = options_of(53, 4, 1, 3);
    options.start = whole.place_at(stop);
    const SampleOrder rest(options);
    EXPECT_EQ(rest.steps_until(4), whole.steps_until(4));
    for (Step step = stop; step < 25; ++step) {
      ASSERT_EQ(rest.batch(step), whole.batch(step)) << step << " from " << stop;
      ASSERT_EQ(rest.epochs_ended_at(step + 1), whole.epochs_ended_at(step + 1));
    }
  }
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
}  // namespace cohort::data::test
