// One contract over every sink: what is recorded, from however many threads, is there.
#include "metrics/metrics_sink.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <thread>

#include "metrics/json_lines_sink.h"
#include "metrics/memory_sink.h"
#include "metrics/sample_records.h"
#include "metrics/tee_sink.h"

namespace cohort::metrics {
namespace {

// A sink and a way to read back what it took.
class Setup {
 public:
  virtual ~Setup() = default;
  virtual MetricsSink& sink() = 0;
  virtual std::vector<AnyRecord> taken() = 0;
};

class MemorySetup final : public Setup {
 public:
  MetricsSink& sink() override { return sink_; }
  std::vector<AnyRecord> taken() override { return sink_.records(); }

 private:
  MemorySink sink_;
};

class JsonSetup final : public Setup {
 public:
  MetricsSink& sink() override { return sink_; }
  std::vector<AnyRecord> taken() override {
    std::vector<AnyRecord> records;
    for (const std::string& line : lines_) {
      const auto record = parse_record(line);
      EXPECT_TRUE(record.has_value()) << line;
      if (record) records.push_back(*record);
    }
    return records;
  }

 private:
  std::vector<std::string> lines_;
  JsonLinesSink sink_{[this](std::string_view line) { lines_.emplace_back(line); }};
};

class TeeSetup final : public Setup {
 public:
  MetricsSink& sink() override { return sink_; }
  std::vector<AnyRecord> taken() override {
    EXPECT_EQ(first_.records().size(), second_.records().size());
    return second_.records();
  }

 private:
  MemorySink first_, second_;
  TeeSink sink_{{&first_, &second_}};
};

using Factory = std::unique_ptr<Setup> (*)();
template <class T>
std::unique_ptr<Setup> make() {
  return std::make_unique<T>();
}
const std::pair<const char*, Factory> kSinks[] = {
    {"memory", make<MemorySetup>}, {"json_lines", make<JsonSetup>}, {"tee", make<TeeSetup>}};

class MetricsSinkConformance : public testing::TestWithParam<std::pair<const char*, Factory>> {};

TEST_P(MetricsSinkConformance, KeepsEveryKindInOrder) {
  const auto setup = GetParam().second();
  setup->sink().record(sample_step());
  setup->sink().record(sample_evaluation());
  setup->sink().record(sample_event());
  setup->sink().record(sample_traffic());
  setup->sink().flush();
  EXPECT_EQ(setup->taken(), (std::vector<AnyRecord>{sample_step(), sample_evaluation(),
                                                    sample_event(), sample_traffic()}));
}

TEST_P(MetricsSinkConformance, KeepsTheOrderOfEachOfSeveralThreads) {
  constexpr int kRanks = 4;
  constexpr int kSteps = 200;
  const auto setup = GetParam().second();
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&, rank] {
      for (int step = 0; step < kSteps; ++step) setup->sink().record(sample_step(rank, step));
      setup->sink().flush();
    });
  }
  for (std::thread& rank : ranks) rank.join();

  std::map<Rank, Step> next;
  for (const AnyRecord& any : setup->taken()) {
    const auto& record = std::get<StepRecord>(any);
    EXPECT_EQ(record.step, next[record.rank]++);
    EXPECT_EQ(record, sample_step(record.rank, record.step));
  }
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_EQ(next[rank], kSteps);
}

INSTANTIATE_TEST_SUITE_P(AllSinks, MetricsSinkConformance, testing::ValuesIn(kSinks),
                         [](const auto& test) { return std::string(test.param.first); });

TEST(JsonLinesSink, FlushesThroughItsHook) {
  int flushes = 0;
  JsonLinesSink sink([](std::string_view) {}, [&] { ++flushes; });
  sink.flush();
  EXPECT_EQ(flushes, 1);
}

TEST(MemorySink, SelectsTheRecordsOfOneKind) {
  MemorySink sink;
  sink.record(sample_step(0, 1));
  sink.record(sample_event());
  sink.record(sample_step(0, 2));
  EXPECT_EQ(sink.all<StepRecord>().size(), 2U);
  EXPECT_EQ(sink.all<EventRecord>().size(), 1U);
  EXPECT_TRUE(sink.all<EvaluationRecord>().empty());
}

}  // namespace
}  // namespace cohort::metrics
