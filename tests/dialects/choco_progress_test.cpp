#include "dialects/choco_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "dialects/memory.h"

namespace cohort::dialects {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kTime = "2020-02-02 20:20:20";

struct Printed {
  Memory out;
  Memory notes;
  std::map<std::string, std::string> files;
  double now = 0;

  std::unique_ptr<engine::Progress> progress(ChocoProgressOptions options) {
    options.now = [this] { return now; };
    options.wall_time = [] { return std::string(kTime); };
    options.save = [this](const std::string& name, const std::string& content) {
      files[name] = content;
    };
    return make_choco_progress(out.stream(), notes.stream(), std::move(options));
  }
};

metrics::StepRecord record_of(Rank rank, Step step) {
  metrics::StepRecord record;
  record.rank = rank;
  record.step = step;
  record.epoch = 0.5;
  record.loss = 1.75;
  record.top1 = 0.375;
  record.top5 = 1;
  record.steps = 10;
  record.bytes_sent = 10ULL * 2 * 1024 * 512;  // ten messages of half a MiB to each of two
  record.data_seconds = 1;
  record.compute_seconds = 6;
  record.exchange_seconds = 2;
  record.update_seconds = 1;
  return record;
}

metrics::EvaluationRecord test_of(const std::string& split, Rank rank, Step step, double top1) {
  metrics::EvaluationRecord record;
  record.rank = rank;
  record.step = step;
  record.epoch = static_cast<double>(step) / 10;
  record.split = split;
  record.loss = 0.5;
  record.top1 = top1;
  record.top5 = 1;
  return record;
}

TEST(ChocoProgress, PrintsARecordAsADictionary) {
  Printed printed;
  const auto progress = printed.progress({.ranks = 2, .receivers = {2, 2}});
  progress->begin({}, 0);
  progress->step(10);
  progress->recorded(record_of(1, 10));
  EXPECT_THAT(printed.out.text(),
              HasSubstr("\nruntime: {'time': '2020-02-02 20:20:20', 'rank': 1, 'epoch': 0.5, "
                        "'local_index': 10, 'n_bits_to_transmit': 0.5, 'loss': 1.75, 'top1': 37.5, "
                        "'top5': 100.0} ({'split': 'train'})\n"));
}

TEST(ChocoProgress, GoesOnFromTheBestOfTheRunSoFar) {
  Printed printed;
  ChocoProgressOptions options{.ranks = 2, .averages = true, .tests_workers = true};
  options.earlier_tests = {test_of("test", 0, 10, 0.99),   test_of("worker", 0, 10, 0.5),
                           test_of("worker", 1, 10, 0.75), test_of("worker", 0, 20, 0.25),
                           test_of("worker", 1, 20, 0.25), test_of("worker", 0, 30, 0.9),
                           test_of("worker", 1, 30, 0.9)};
  const auto progress = printed.progress(options);
  progress->begin({}, 20);  // what came after step 20 was lost and comes again
  progress->step(30);
  progress->evaluated(test_of("worker", 0, 30, 0.5));
  progress->evaluated(test_of("worker", 1, 30, 0.5));
  progress->end();
  EXPECT_THAT(printed.out.text(), HasSubstr("best performance at local index 30 (best epoch 1.000, "
                                            "current epoch 3.000): 62.5."));
}

TEST(ChocoProgress, TestsTheAverageThenEachModelAndKeepsTheBestMean) {
  Printed printed;
  const auto progress = printed.progress({.ranks = 2, .averages = true, .tests_workers = true});
  progress->begin({}, 0);
  progress->step(10);
  progress->evaluated(test_of("worker", 0, 10, 0.5));
  progress->evaluated(test_of("worker", 1, 10, 0.75));
  progress->evaluated(test_of("test", 0, 10, 0.875));
  progress->step(11);
  std::string text = printed.out.text();
  EXPECT_LT(text.find("eval the averaged model on full val data."), text.find("'top1': 87.5"));
  EXPECT_LT(text.find("'top1': 87.5"), text.find("eval the local model on full val data."));
  EXPECT_THAT(text, HasSubstr("'top1': 75.0, 'top5': 100.0} ({'split': 'test', 'type': "
                              "'local_model_on_full_val'})\n"));
  EXPECT_THAT(text, HasSubstr("2020-02-02 20:20:20\tbest performance at local index 10 (best epoch "
                              "1.000, current epoch 1.000): 62.5.\n"));
  progress->step(20);
  progress->evaluated(test_of("test", 0, 20, 0.95));
  progress->evaluated(test_of("worker", 0, 20, 0.25));
  progress->end();
  text = printed.out.text();
  EXPECT_THAT(text, HasSubstr("best performance at local index 20 (best epoch 1.000, current epoch "
                              "2.000): 62.5.\n"));
  EXPECT_THAT(printed.files["log.txt"], HasSubstr("best performance at local index 20"));
}

TEST(ChocoProgress, HasOneTestWhereAllHaveTheSameModel) {
  Printed printed;
  const auto progress = printed.progress({});
  progress->begin({}, 0);
  progress->evaluated(test_of("test", 0, 10, 0.5));
  progress->end();
  EXPECT_THAT(printed.out.text(), HasSubstr("local_model_on_full_val"));
  EXPECT_THAT(printed.out.text(), Not(HasSubstr("averaged")));
  EXPECT_THAT(printed.out.text(), HasSubstr("): 50.0.\n"));
}

TEST(ChocoProgress, PrintsTheTableOfTimings) {
  Printed printed;
  const auto progress = printed.progress({.track_time = true, .display_time = true});
  progress->begin({}, 0);
  progress->step(10);
  progress->recorded(record_of(0, 10));
  printed.now = 20;
  progress->step(11);
  const std::string text = printed.out.text();
  EXPECT_THAT(text, HasSubstr("--- Timer summary ---"));
  EXPECT_THAT(text,
              HasSubstr("- forward_and_backward_pass      |     10 |     0.60000s |  30.0%\n"));
  EXPECT_THAT(text,
              HasSubstr("- sync_and_apply_grad            |     10 |     0.30000s |  15.0%\n"));
  EXPECT_THAT(text, HasSubstr("- total_averaged_time           |     10 |     1.00000s |\n"));
  progress->end();
  const auto log = nlohmann::json::parse(printed.files["log-1.json"]);
  EXPECT_EQ(log.size(), 4U);
  EXPECT_EQ(log[1]["measurement"], "timer");
  EXPECT_EQ(log[1]["event"], "load_data");
  EXPECT_EQ(log[1]["value"], 0.1);
}

TEST(ChocoProgress, LogsRecordsAndTheDistanceToTheAverage) {
  Printed printed;
  const auto progress = printed.progress({.averages = true});
  progress->begin({}, 0);
  progress->recorded(record_of(0, 10));
  metrics::EvaluationRecord average = test_of("test", 0, 10, 0.5);
  average.consensus_distance = 2.5;
  progress->evaluated(average);
  progress->end();
  const auto log = nlohmann::json::parse(printed.files["log-1.json"]);
  ASSERT_EQ(log.size(), 4U);
  EXPECT_EQ(log[0]["measurement"], "runtime");
  EXPECT_EQ(log[0]["local_index"], 10);
  EXPECT_EQ(log[0]["split"], "train");
  EXPECT_EQ(log[1]["type"], "averaged_model_on_full_val");
  EXPECT_EQ(log[2]["measurement"], "stat");
  EXPECT_EQ(log[2]["distance"], 2.5);
  EXPECT_EQ(log[3]["best_perf"], 50.0);
}

TEST(ChocoProgress, BeginsAnotherLogAfterAThousandRecords) {
  Printed printed;
  const auto progress = printed.progress({.first_log = 3, .earlier_text = "before\n"});
  progress->begin({}, 0);
  for (Step step = 1; step <= 1001; ++step) progress->recorded(record_of(0, step));
  progress->end();
  EXPECT_EQ(nlohmann::json::parse(printed.files["log-3.json"]).size(), 1000U);
  EXPECT_EQ(nlohmann::json::parse(printed.files["log-4.json"]).size(), 1U);
  EXPECT_EQ(printed.files["log.txt"], "before\n");
}

TEST(ChocoProgress, JudgesTextByItsPerplexityTheLowestIsBest) {
  Printed printed;
  const auto progress = printed.progress({});
  engine::ProgressPlan plan;
  plan.text = true;
  progress->begin(plan, 0);
  metrics::EvaluationRecord test = test_of("test", 0, 10, 0.5);
  test.loss = 0;
  progress->evaluated(test);
  progress->step(11);
  test.step = 20;
  test.epoch = 2;
  test.loss = 1;
  progress->evaluated(test);
  progress->end();
  EXPECT_THAT(printed.out.text(), HasSubstr("'loss': 0.0, 'ppl': 1.0} ({'split': 'test'"));
  EXPECT_THAT(printed.out.text(), Not(HasSubstr("top1")));
  EXPECT_THAT(printed.out.text(), HasSubstr("best epoch 1.000, current epoch 2.000): 1.0.\n"));
}

TEST(ChocoProgress, WritesWhatIsNoNumberAsPythonDoes) {
  Printed printed;
  const auto progress = printed.progress({});
  progress->begin({}, 0);
  metrics::StepRecord record = record_of(0, 1);
  record.loss = std::numeric_limits<double>::quiet_NaN();
  progress->recorded(record);
  progress->note("careful");
  progress->end();
  EXPECT_THAT(printed.out.text(), HasSubstr("'loss': nan,"));
  EXPECT_TRUE(nlohmann::json::parse(printed.files["log-1.json"])[0]["loss"].is_null());
  EXPECT_EQ(printed.notes.text(), "careful\n");
}

}  // namespace
}  // namespace cohort::dialects
