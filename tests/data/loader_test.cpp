#include "data/loader.h"

#include <atomic>
#include <optional>

#include "core/clock.h"
#include "core/error.h"
#include "core/patience.h"
#include "data/support.h"
#include "data/synthetic.h"

namespace cohort::data::test {
namespace {

using ::testing::HasSubstr;

SampleOrder order_of(std::int64_t samples, std::int64_t batch) {
  SampleOrderOptions options;
  options.samples = samples;
  options.batch = batch;
  options.seed = 3;
  return SampleOrder(options);
}

const SyntheticDataset& some_data() {
  static const SyntheticDataset data({2, 3, 4}, 5, 100, 1, "train");
  return data;
}

TEST(Loader, GivesTheSameBatchesInOrderForEveryNumberOfThreads) {
  const SampleOrder order = order_of(100, 7);
  for (const int threads : {0, 1, 3}) {
    for (const int depth : {0, 1, 8}) {
      Loader loader(some_data(), order,
                    {.threads = threads, .depth = depth, .first_step = 3, .last_step = 40});
      Step step = 3;
      for (; !loader.done(); ++step) {
        const LoadedBatch batch = loader.next();
        const std::vector<SampleRef> refs = order.batch(step);
        ASSERT_EQ(batch.step(), step);
        ASSERT_EQ(batch.size(), static_cast<std::int64_t>(refs.size()));
        ASSERT_EQ(batch.inputs().size(), refs.size() * 24);
        for (std::size_t i = 0; i < refs.size(); ++i) {
          ASSERT_EQ(batch.labels()[i], some_data().label(refs[i].index));
          const auto inputs = batch.inputs().subspan(i * 24, 24);
          ASSERT_EQ(std::vector<float>(inputs.begin(), inputs.end()),
                    read_sample(some_data(), refs[i].index, refs[i].augmentation));
        }
      }
      EXPECT_EQ(step, 40);
    }
  }
}

TEST(Loader, BuffersAreReused) {
  const SampleOrder order = order_of(100, 10);
  std::atomic<int> allocated = 0;
  LoaderOptions options{.threads = 2, .depth = 3, .last_step = 200};
  options.allocate = [&](std::size_t count) {
    ++allocated;
    EXPECT_EQ(count, 240U);
    return std::shared_ptr<float>(new float[count], std::default_delete<float[]>());
  };
  Loader loader(some_data(), order, options);
  while (!loader.done()) loader.next();
  EXPECT_EQ(allocated, 3);
}

TEST(Loader, ACallerWhoKeepsEverythingMakesTheRingGrow) {
  const SampleOrder order = order_of(100, 10);
  for (const int threads : {0, 2}) {
    Loader loader(some_data(), order, {.threads = threads, .depth = 1, .last_step = 30});
    std::vector<LoadedBatch> kept;
    while (!loader.done()) kept.push_back(loader.next());
    ASSERT_EQ(kept.size(), 30U);
    for (Step step = 0; step < 30; ++step) {
      const LoadedBatch& batch = kept[static_cast<std::size_t>(step)];
      const SampleRef first = order.batch(step)[0];
      EXPECT_EQ(batch.inputs()[0], read_sample(some_data(), first.index)[0]);
    }
  }
}

TEST(Loader, BatchesOutliveTheLoader) {
  const SampleOrder order = order_of(100, 10);
  std::optional<LoadedBatch> batch;
  {
    Loader loader(some_data(), order, {.threads = 2});
    batch = loader.next();
  }
  const LoadedBatch copy = *batch;
  batch.reset();
  EXPECT_EQ(copy.inputs()[0], read_sample(some_data(), order.batch(0)[0].index)[0]);
}

TEST(Loader, CanBeDestroyedAtAnyTime) {
  const SampleOrder order = order_of(100, 10);
  for (int i = 0; i < 50; ++i) {
    Loader loader(some_data(), order, {.threads = 3, .depth = 1 + i % 4});
    std::vector<LoadedBatch> kept;
    for (int k = 0; k < i % 5; ++k) kept.push_back(loader.next());
    if (i % 2 == 0) std::this_thread::yield();
  }
}

// Refuses one sample, and can be told to be slow.
class FaultyDataset final : public Dataset {
 public:
  explicit FaultyDataset(std::int64_t bad, std::chrono::milliseconds delay = {})
      : bad_(bad), delay_(delay) {}
  std::int64_t size() const override { return 100; }
  SampleShape shape() const override { return {1, 1, 1}; }
  const std::vector<std::string>& class_names() const override { return names_; }
  std::int64_t label(std::int64_t) const override { return 0; }
  void read(std::int64_t index, std::uint64_t, std::span<float> out) const override {
    if (delay_.count() > 0) std::this_thread::sleep_for(delay_);
    if (index == bad_) throw FileError("sample " + std::to_string(index) + " is damaged");
    out[0] = static_cast<float>(index);
  }

 private:
  std::int64_t bad_;
  std::chrono::milliseconds delay_;
  std::vector<std::string> names_ = {"a"};
};

TEST(Loader, AReadersErrorIsThrownForItsBatchAloneAndInItsTurn) {
  SampleOrderOptions options;
  options.samples = 100;
  options.batch = 10;
  options.shuffle = false;
  const SampleOrder order(options);
  const FaultyDataset data(34);
  for (const int threads : {0, 1, 3}) {
    Loader loader(data, order, {.threads = threads, .last_step = 10});
    for (Step step = 0; step < 10; ++step) {
      if (step == 3) {
        EXPECT_THAT(message_of<FileError>([&] { loader.next(); }),
                    HasSubstr("sample 34 is damaged"));
      } else {
        EXPECT_EQ(loader.next().inputs()[0], static_cast<float>(10 * step));
      }
    }
  }
}

TEST(Loader, StoppingWakesAWaitingCaller) {
  const FaultyDataset slow(-1, std::chrono::milliseconds(20));  // a full batch takes two seconds
  const SampleOrder order = order_of(100, 100);
  const Clock::time_point start = Clock::now();
  Loader loader(slow, order, {.threads = 1});
  std::thread stopper([&] { loader.stop(); });
  EXPECT_THAT(message_of<RunError>([&] { loader.next(); }), HasSubstr("stopped"));
  stopper.join();
  EXPECT_LT(seconds_between(start, Clock::now()), patiently(1.0));
}

TEST(Loader, GivesUpAfterTheTimeout) {
  const FaultyDataset slow(-1, std::chrono::milliseconds(20));
  const SampleOrder order = order_of(100, 100);
  Loader loader(slow, order, {.threads = 1, .timeout = std::chrono::milliseconds(30)});
  EXPECT_THAT(message_of<RunError>([&] { loader.next(); }), HasSubstr("no batch for step 0"));
}

TEST(Loader, EmptyBatchesAreDelivered) {
  SampleOrderOptions options;
  options.samples = 3;
  options.batch = 1;
  options.rank = 3;
  options.workers = 4;
  const SampleOrder order(options);
  Loader loader(some_data(), order, {.threads = 1, .last_step = 2});
  EXPECT_EQ(loader.next().size(), 0);
  EXPECT_EQ(loader.next().size(), 0);
}

TEST(Loader, SenselessOptionsAreRefused) {
  const SampleOrder order = order_of(100, 10);
  EXPECT_THROW(Loader(some_data(), order, {.threads = -1}), ConfigError);
  EXPECT_THROW(Loader(some_data(), order, {.depth = -1}), ConfigError);
}

}  // namespace
}  // namespace cohort::data::test
