#include "report/conclusion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace cohort::report {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

// Runs with settings and a final accuracy on 10,000 samples each.
class Conclusions : public testing::Test {
 protected:
  void add(const std::string& label, double top1, nlohmann::json config) {
    RunRecords run;
    run.folder = "runs/" + label;
    run.config = std::move(config);
    run.summary = {{"reason", "finished"}};
    run.evaluations = {{.time_seconds = 10,
                        .step = 1,
                        .split = "test",
                        .loss = 1,
                        .top1 = top1,
                        .samples = 10000}};
    runs_.push_back(std::move(run));
    labels_.push_back(label);
  }

  std::vector<std::string> sentences() const {
    std::vector<RunResult> results;
    for (const RunRecords& run : runs_) results.push_back(result_of(run));
    const auto differences = differing_settings(runs_);
    return conclusions({runs_, labels_, results, differences});
  }

  std::vector<RunRecords> runs_;
  std::vector<std::string> labels_;
};

TEST_F(Conclusions, SayOnHowManyRunsTheyRest) {
  add("a", 0.98, {{"lr", 0.1}});
  EXPECT_EQ(sentences()[0], "This rests on 1 run.");
  add("b", 0.97, {{"lr", 0.2}});
  EXPECT_THAT(sentences()[0], StartsWith("This rests on 2 runs, which differ in lr. Each setting "
                                         "was run once"));
}

TEST_F(Conclusions, CallASmallDifferenceNotSignificant) {
  add("a", 0.9800, {{"lr", 0.1}});
  add("b", 0.9810, {{"lr", 0.2}});
  // sqrt(0.981 * 0.019 / 10000 + 0.98 * 0.02 / 10000) = 0.00196
  EXPECT_THAT(sentences()[1], HasSubstr("is 98.10%: b. It is 0.10 points above the next, a "
                                        "(98.00%); the standard error of that difference is 0.20 "
                                        "points, so it is not significant."));
}

TEST_F(Conclusions, CallALargeDifferenceSignificant) {
  add("a", 0.9700, {{"lr", 0.1}});
  add("b", 0.9810, {{"lr", 0.2}});
  add("c", 0.9805, {{"lr", 0.3}});
  EXPECT_THAT(sentences(), Contains("Significantly lower than the best is a (97.00%); the rest "
                                    "are not."));
  add("d", 0.99, {{"lr", 0.4}});
  EXPECT_THAT(sentences(), Contains("All others are significantly lower."));
}

TEST_F(Conclusions, WithoutTheSizeOfTheTestSetSaveTheirJudgement) {
  add("a", 0.97, {{"lr", 0.1}});
  add("b", 0.98, {{"lr", 0.2}});
  for (RunRecords& run : runs_) run.evaluations[0].samples = 0;
  EXPECT_THAT(sentences(), Each(Not(HasSubstr("significant"))));
}

TEST_F(Conclusions, TakeTheMeanOverSeeds) {
  for (int seed = 1; seed <= 3; ++seed) {
    add("a" + std::to_string(seed), 0.970 + 0.001 * seed, {{"lr", 0.1}, {"seed", seed}});
    add("b" + std::to_string(seed), 0.980 + 0.001 * seed, {{"lr", 0.2}, {"seed", seed}});
  }
  const auto all = sentences();
  EXPECT_THAT(all[0], HasSubstr("Each setting was run 3 times"));
  EXPECT_THAT(all[1], HasSubstr("is 98.20 ± 0.10%: lr 0.2, mean of 3. It"));
  EXPECT_THAT(all[1], HasSubstr("1.00 points above the next, lr 0.1, mean of 3 (97.20 ± 0.10%)"));
  EXPECT_THAT(all[1], HasSubstr("so it is significant"));
}

// Three seeds, for which the program found three step sizes, are not three settings.
TEST_F(Conclusions, DoNotCrownALuckySeed) {
  const auto choco = [&](int seed, double top1, const char* found) {
    add("choco" + std::to_string(seed), top1,
        {{"method", "choco"}, {"consensus-stepsize", found}, {"seed", seed}});
    runs_.back().description = {{"asked", {{"consensus-stepsize", "auto"}}}};
  };
  choco(1, 0.975, "0.31");
  choco(2, 0.955, "0.33");
  choco(3, 0.945, "0.35");
  for (int seed = 1; seed <= 3; ++seed) {
    add("all-reduce" + std::to_string(seed), 0.969 + 0.001 * seed,
        {{"method", "all-reduce"}, {"consensus-stepsize", "auto"}, {"seed", seed}});
  }
  const auto all = sentences();
  EXPECT_THAT(all[0], StartsWith("This rests on 6 runs, which differ in method and seed."));
  EXPECT_THAT(all[1], HasSubstr("is 97.10 ± 0.10%: method all-reduce, mean of 3."));
  EXPECT_THAT(all[1], HasSubstr("the next, method choco, mean of 3 (95.83 ± 1.53%)"));
  EXPECT_THAT(all[1], HasSubstr("not significant"));
  // Runs that do not say what was asked for tell their commands.
  for (int i = 0; i < 3; ++i) {
    runs_[i].description = {{"command", {"cohort", "train", "--method", "choco"}}};
  }
  EXPECT_EQ(sentences(), all);
  for (int i = 0; i < 3; ++i) runs_[i].description["command"].push_back("--consensus-stepsize");
  EXPECT_THAT(sentences()[0], HasSubstr("consensus-stepsize"));
}

// One run may be as lucky as any seed of another setting.
TEST_F(Conclusions, JudgeASingleRunByTheSpreadOfTheOthers) {
  add("once", 0.981, {{"lr", 0.2}, {"seed", 1}});
  for (int seed = 1; seed <= 3; ++seed) {
    add("a" + std::to_string(seed), 0.960 + 0.01 * (seed - 2), {{"lr", 0.1}, {"seed", seed}});
  }
  EXPECT_THAT(sentences()[1], HasSubstr("is 98.10%: once. It is 2.10 points above the next"));
  EXPECT_THAT(sentences()[1], HasSubstr("so it is not significant"));
}

TEST_F(Conclusions, SayWhatAnAccuracyCost) {
  for (const char* method : {"all-reduce", "choco"}) {
    const bool cheap = method[0] == 'c';
    add(method, cheap ? 0.868 : 0.872, {{"method", method}});
    runs_.back().evaluations.insert(
        runs_.back().evaluations.begin(),
        {.time_seconds = 5, .step = 1, .split = "test", .top1 = cheap ? 0.5 : 0.865});
    for (const double time : {4.0, 9.0}) {
      for (const Rank rank : {0, 1}) {
        runs_.back().steps.push_back({.time_seconds = time,
                                      .rank = rank,
                                      .step = 1,
                                      .bytes_sent = cheap ? 1000000U : 50000000U});
      }
    }
  }
  EXPECT_THAT(sentences(), Contains(AllOf(HasSubstr("To 86% test accuracy, the highest"),
                                          HasSubstr("all-reduce 5.00 s and 100 MB and choco 10.0 s "
                                                    "and 4.00 MB."))));
}

TEST_F(Conclusions, GroupByTheSettingsThatDiffer) {
  for (const char* server : {"fifo", "latest"}) {
    for (const double probability : {1.0, 0.0, 0.5}) {
      add(std::string(server) + std::to_string(probability),
          (server[0] == 'f' ? 0.9 : 0.8) + probability / 100,
          {{"swamp-server", server}, {"pull-probability", probability}});
    }
  }
  EXPECT_THAT(sentences(), Contains("swamp-server fifo: 90.00% with pull-probability 0, 90.50% "
                                    "with 0.5 and 91.00% with 1."));
  EXPECT_THAT(sentences(), Contains(StartsWith("swamp-server latest: 80.00% with")));
}

TEST_F(Conclusions, NameShocksFreezesAndDivergence) {
  add("calm", 0.98, {{"lr", 0.1}});
  add("shaken", 0.97, {{"lr", 0.2}});
  add("lost", 0.10, {{"lr", 0.3}});
  for (RunRecords& run : runs_) {
    for (int i = 0; i < 20; ++i) {
      ScoredDump dump;
      dump.score = {1.0 / (i + 1), 0.9, i + 1.0};
      run.dumps.workers[0].push_back(dump);
    }
  }
  runs_[1].dumps.workers[0][10].score.loss = 2;
  runs_[1].dumps.workers[0][15].score.loss = 2;
  ScoredDump frozen;
  frozen.name = {.of_server = true, .version = 7};
  frozen.score = {0.5, 0.97, 4};
  runs_[1].dumps.server = {frozen};
  runs_[2].evaluations[0].loss = NAN;
  const auto all = sentences();
  EXPECT_THAT(all, Contains(HasSubstr("are seen in shaken: 2 (worker 0: 2). None in the 2 other "
                                      "runs with dumps.")));
  EXPECT_THAT(all, Contains(AllOf(HasSubstr("The server of shaken stopped improving early: version "
                                            "7, its last, came after 4.00 of 20.0 s (20%)"),
                                  HasSubstr("has 0.0500, and was not taken."))));
  EXPECT_THAT(all, Contains("Diverged (the last loss is not a number): lost."));
}

TEST_F(Conclusions, ClaimNothingThatNoRunShows) {
  add("a", 0.98, {{"lr", 0.1}});
  add("b", 0.97, {{"lr", 0.2}});
  for (const char* word :
       {"shock", "stopped improving", "Diverged", "samples a second", "Not finished"}) {
    EXPECT_THAT(sentences(), Each(Not(HasSubstr(word))));
  }
  runs_[1].summary = nlohmann::json::object();
  EXPECT_THAT(sentences(), Contains(HasSubstr("Not finished, so their numbers are those of their "
                                              "last records: b.")));
}

TEST_F(Conclusions, CompareSpeeds) {
  add("a", 0.98, {{"workers", 1}});
  add("b", 0.98, {{"workers", 2}});
  runs_[0].steps = {{.step = 1, .samples = 1000, .compute_seconds = 1, .steps = 1}};
  for (const Rank rank : {0, 1}) {
    runs_[1].steps.push_back(
        {.rank = rank, .step = 1, .samples = 950, .compute_seconds = 1, .steps = 1});
  }
  EXPECT_THAT(
      sentences(),
      Contains("Training ran at 1000 (a) to 1900 samples a second (b), a ratio of 1.90. The "
               "numbers of workers differ."));
}

TEST(Differences, AreSettingsOfTrainingWithMoreThanOneValue) {
  std::vector<RunRecords> runs(2);
  runs[0].config = {{"lr", 0.1}, {"seed", 1}, {"batch", 64}, {"name", "a"}, {"method", "local"}};
  runs[1].config = {{"lr", 0.1},   {"seed", 2},         {"batch", 32},
                    {"name", "b"}, {"method", "swamp"}, {"pull-probability", 1.0}};
  std::vector<std::string> names;
  for (const Difference& difference : differing_settings(runs)) names.push_back(difference.name);
  EXPECT_THAT(names, ElementsAre("method", "batch", "seed"));
}

// A start from other weights is no repetition, and speeds of other engines are not averaged.
TEST(Differences, AreInInitialWeightsAndInWhatDecidesTheSpeed) {
  std::vector<RunRecords> runs(2);
  runs[0].config = {{"init", ""}, {"engine", "threads"}, {"threads", 1}, {"servers", "2"}};
  runs[1].config = {
      {"init", "a.safetensors"}, {"engine", "tcp"}, {"threads", 2}, {"servers", "a:1,b:1"}};
  std::vector<std::string> names;
  for (const Difference& difference : differing_settings(runs)) names.push_back(difference.name);
  EXPECT_THAT(names, ElementsAre("engine", "init", "threads"));
}

TEST(Differences, ShowSettingsOfAMethodOnlyWhereItHasThem) {
  const std::map<std::string, std::vector<std::string>> unused = {
      {"parameter-server", {"consensus-stepsize"}},
      {"choco", {"server-mode"}},
      {"local", {"server-mode", "consensus-stepsize"}}};
  const auto differences = [&](const std::vector<nlohmann::json>& configs) {
    std::vector<RunRecords> runs;
    for (const nlohmann::json& config : configs) {
      runs.emplace_back().config = config;
      runs.back().description["unused"] = unused.at(config.at("method"));
    }
    std::map<std::string, std::vector<std::string>> found;
    for (const Difference& each : differing_settings(runs)) found[each.name] = each.values;
    return found;
  };
  const nlohmann::json servers = {{"method", "parameter-server"},
                                  {"server-mode", "async"},
                                  {"consensus-stepsize", "auto"},
                                  {"lr", 1}};
  nlohmann::json choco = servers;
  choco.update({{"method", "choco"}, {"server-mode", "sync"}, {"consensus-stepsize", "0.3"}});
  nlohmann::json alone = choco;
  alone.update({{"method", "local"}, {"lr", 2}});
  auto found = differences({servers, choco, alone});
  EXPECT_THAT(found["server-mode"], ElementsAre("async", "", ""));
  EXPECT_THAT(found["consensus-stepsize"], ElementsAre("", "0.3", ""));
  EXPECT_THAT(found["lr"], ElementsAre("1", "1", "2"));
  nlohmann::json odd = alone;
  odd["server-mode"] = "ssp";
  EXPECT_FALSE(differences({alone, odd}).contains("server-mode"));
}

TEST(Differences, RunsThatDifferInTheirSeedsAreRepetitions) {
  const std::vector<Difference> differences = {{"lr", {"1", "2", "1"}}, {"seed", {"1", "1", "2"}}};
  const auto groups = repetitions(3, differences);
  ASSERT_THAT(groups, SizeIs(2));
  EXPECT_THAT(groups[0].runs, ElementsAre(0, 2));
  EXPECT_THAT(groups[1].runs, ElementsAre(1));
  EXPECT_THAT(groups[1].values, ElementsAre("2"));
}

TEST(Results, TheServersLastVersionCountsMostThenTheLastEvaluation) {
  RunRecords run;
  EXPECT_FALSE(result_of(run).top1());
  ScoredDump dump;
  dump.score = {0.4, 0.8, 5};
  run.dumps.workers[0] = {dump};
  dump.score.accuracy = 0.9;
  run.dumps.workers[1] = {dump};
  EXPECT_DOUBLE_EQ(*result_of(run).top1(), 0.85);
  run.evaluations = {{.step = 2, .split = "test", .loss = 0.3, .top1 = 0.91, .samples = 50},
                     {.step = 1, .split = "test", .loss = 0.2, .top1 = 0.95, .samples = 50}};
  EXPECT_EQ(result_of(run).top1(), 0.91);
  EXPECT_EQ(result_of(run).best_top1, 0.95);
  EXPECT_EQ(result_of(run).test_samples, 50);
  dump.score = {0.1, 0.97, 6};
  run.dumps.server = {dump};
  EXPECT_EQ(result_of(run).top1(), 0.97);
  EXPECT_EQ(result_of(run).loss(), 0.1);
  EXPECT_EQ(result_of(run).seconds, 6);
}

}  // namespace
}  // namespace cohort::report
