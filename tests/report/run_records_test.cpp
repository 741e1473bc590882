#include "report/run_records.h"

#include <gmock/gmock.h>

#include "core/error.h"
#include "report/run_folder.h"

namespace cohort::report {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ReadRun : public RunFolderTest {
 protected:
  static std::string refusal(const std::filesystem::path& folder) {
    try {
      read_run(folder);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }

  metrics::StepRecord step_ = {.time_seconds = 1.5, .rank = 0, .step = 50, .epoch = 0.5, .loss = 2};
  metrics::EvaluationRecord evaluation_ = {.step = 100, .epoch = 1, .split = "test", .top1 = 0.75};
};

TEST_F(ReadRun, GivesWhatWasWritten) {
  const auto folder = write_run("a", R"({"method": "local", "batch": 64})",
                                lines(metrics::EventRecord{.event = "start"}, step_, evaluation_));
  const RunRecords run = read_run(folder);
  EXPECT_THAT(run.steps, ElementsAre(step_));
  EXPECT_THAT(run.evaluations, ElementsAre(evaluation_));
  EXPECT_THAT(run.notes, IsEmpty());
  EXPECT_EQ(run.setting("method"), "local");
  EXPECT_EQ(run.setting("batch"), "64");
  EXPECT_EQ(run.setting("absent"), "");
}

TEST_F(ReadRun, SkipsATornLastLineAndSaysSo) {
  const std::string whole = lines(step_, evaluation_);
  for (std::size_t cut = 1; cut < lines(evaluation_).size() - 1; ++cut) {
    const RunRecords run = read_run(write_run("a", "{}", whole.substr(0, whole.size() - 1 - cut)));
    EXPECT_THAT(run.steps, ElementsAre(step_));
    EXPECT_THAT(run.evaluations, IsEmpty());
    EXPECT_THAT(run.notes, ElementsAre(HasSubstr("metrics.jsonl: the last line is incomplete")));
  }
}

TEST_F(ReadRun, SkipsDamagedLinesAndCountsThem) {
  const RunRecords run =
      read_run(write_run("a", "{}",
                         "\x01\xFF garbage\n" + lines(step_) + "\n[]\n" +
                             R"({"type":"step","loss":"high"})" + "\n" + lines(evaluation_)));
  EXPECT_EQ(run.steps.size(), 1U);
  EXPECT_EQ(run.evaluations.size(), 1U);
  EXPECT_THAT(run.notes,
              ElementsAre(AllOf(HasSubstr("skipped 3 damaged lines"), HasSubstr("at line 1"))));
}

TEST_F(ReadRun, IgnoresRecordsOfTheFuture) {
  const RunRecords run = read_run(write_run("a", "{}",
                                            R"({"type":"server","updates":3})"
                                            "\n" +
                                                lines(step_) +
                                                R"({"type":"x"})"
                                                "\n"));
  EXPECT_EQ(run.steps.size(), 1U);
  EXPECT_THAT(run.notes, IsEmpty());
}

TEST_F(ReadRun, TakesTheTestSetOnly) {
  metrics::EvaluationRecord other = evaluation_;
  other.split = "train";
  EXPECT_THAT(read_run(write_run("a", "{}", lines(other, evaluation_))).evaluations,
              ElementsAre(evaluation_));
}

TEST_F(ReadRun, TakesTheTextForValidationWhereThatIsEvaluated) {
  metrics::EvaluationRecord validation = evaluation_;
  validation.split = "validation";
  const RunRecords run =
      read_run(write_run("a", R"({"eval-split": "validation"})", lines(evaluation_, validation)));
  EXPECT_THAT(run.evaluations, ElementsAre(validation));
  EXPECT_EQ(run.evaluated_on(), "validation");
  const RunRecords usual = read_run(write_run("b", "{}", lines(evaluation_, validation)));
  EXPECT_THAT(usual.evaluations, ElementsAre(evaluation_)) << "what a server of swamp accepted";
  EXPECT_EQ(evaluated_on({run, run}), "validation");
  EXPECT_EQ(evaluated_on({run, usual}), "test or validation");
}

TEST_F(ReadRun, ARunThatJustBeganIsFine) {
  const auto folder = write_run("a", "{}", "");
  EXPECT_THAT(read_run(folder).steps, IsEmpty());
  std::filesystem::remove(folder / "metrics.jsonl");
  EXPECT_THAT(read_run(folder).steps, IsEmpty());
}

TEST_F(ReadRun, RefusesWhatIsNoRun) {
  EXPECT_THAT(refusal(folder_ / "absent"), HasSubstr("there is no run directory"));
  EXPECT_THAT(refusal(folder_), HasSubstr("no run.json"));
  const auto run = write_run("one", "{}", "");
  EXPECT_THAT(refusal(run / "run.json"), HasSubstr("a file"));
  EXPECT_THAT(refusal(folder_), HasSubstr(run.string())) << "names the runs in it";
}

TEST_F(ReadRun, NamesADamagedDescription) {
  const auto run = write_run("a", "{", "");
  try {
    read_run(run);
    FAIL();
  } catch (const FileError& error) {
    EXPECT_THAT(error.what(), HasSubstr((run / "run.json").string()));
  }
}

TEST_F(ReadRun, TakesTheSummaryAndStepsOfAnEpoch) {
  const auto folder = write_run("a", "{}", lines(step_));
  EXPECT_EQ(read_run(folder).steps_per_epoch(), 100) << "step 50 is half an epoch";
  std::ofstream(folder / "run.json") << R"({"steps_per_epoch": 938, "config": {"p": 1.0}})";
  std::ofstream(folder / "summary.json") << R"({"reason": "finished"})";
  const RunRecords run = read_run(folder);
  EXPECT_EQ(run.steps_per_epoch(), 938);
  EXPECT_EQ(run.summary["reason"], "finished");
  EXPECT_EQ(run.setting("p"), "1");
  EXPECT_THAT(run.begun, testing::MatchesRegex("20[0-9-]* [0-9:]* UTC"));
  std::ofstream(folder / "summary.json") << "{";
  EXPECT_THAT(read_run(folder).notes, ElementsAre(HasSubstr("summary.json was skipped")));
}

TEST_F(ReadRun, AFolderOfRunsStandsForThoseInIt) {
  for (const char* name : {"t10_p1", "t2_p0.5", "t2_p0", "t2_p0.25"}) write_run(name, "{}", "");
  const auto runs = expanded_runs({folder_.string(), (folder_ / "t2_p0").string(), "absent"});
  std::vector<std::string> names;
  for (const auto& run : runs) names.push_back(run.filename().string());
  EXPECT_THAT(names, ElementsAre("t2_p0", "t2_p0.25", "t2_p0.5", "t10_p1", "t2_p0", "absent"));
}

TEST_F(ReadRun, TheProcessesOfAJobAreOneRun) {
  const auto config = [](int rank, int workers) {
    return R"({"workers": )" + std::to_string(workers) + R"(, "rank": )" + std::to_string(rank) +
           "}";
  };
  metrics::StepRecord other = step_;
  other.rank = 2;
  other.time_seconds = 1;
  const auto first = write_run("a", config(0, 3), lines(step_));
  const auto last = write_run("a-worker2", config(2, 3), lines(other));
  write_run("a-worker1", config(1, 2), lines(step_));  // of another job
  EXPECT_THAT(processes_of(first), ElementsAre(first, last));
  EXPECT_THAT(expanded_runs({folder_.string()}), ElementsAre(first, folder_ / "a-worker1"));
  EXPECT_THAT(jobs_among({last.string() + "/", first}), ElementsAre(first));
  EXPECT_THAT(jobs_among({last}), ElementsAre(last));
  const RunRecords run = read_run(first);
  EXPECT_THAT(run.steps, ElementsAre(other, step_)) << "in the order of time";
  EXPECT_EQ(run.totals().workers(), 2);
  EXPECT_EQ(run.totals().steps().samples, 2 * step_.samples) << "of both";
  EXPECT_THAT(read_run(last).steps, ElementsAre(other)) << "one alone when it is asked for";
}

class RunsOfAJob : public ReadRun {
 protected:
  // The folder of a process of the job `job`; its server's where `rank` is negative.
  std::filesystem::path process(const std::string& name, const std::string& job, int rank,
                                const std::string& model = "net") {
    const auto folder = write_run(name, "{}", rank < 0 ? "" : lines(step_));
    nlohmann::json document = {
        {"config",
         {{"workers", 2}, {"rank", rank}, {"method", "swamp"}, {"model", model}, {"seed", 1}}},
        {"command", {"cohort", rank < 0 ? "serve-best" : "train"}}};
    if (!job.empty()) document["job"] = job;
    std::ofstream(folder / "run.json") << document.dump();
    return folder;
  }

  static void score(const std::filesystem::path& run) {
    std::filesystem::create_directories(run / "dumps/ps");
    std::ofstream(run / "dumps/ps/model_params_ps_model_version_1_sec_3.eval") << "0.5_0.8_3.0";
  }
};

TEST_F(RunsOfAJob, IncludeTheServers) {
  const auto first = process("a", "1234", 0);
  const auto other = process("a-worker1", "1234", 1);
  const auto server = process("a-server", "1234", -1);
  score(server);
  EXPECT_THAT(processes_of(first), ElementsAre(first, other, server));
  EXPECT_THAT(jobs_among({first, server, other}), ElementsAre(first));
  const RunRecords run = read_run(first);
  EXPECT_EQ(run.steps.size(), 2U);
  EXPECT_EQ(run.dumps.server.size(), 1U) << "its models are the job's";
  EXPECT_THAT(run.notes, IsEmpty());
}

TEST_F(RunsOfAJob, IncludeAServerThatNobodyNamed) {
  const auto first = process("net-digits-003", "1234", 0);
  process("swamp-server-001", "5678", -1);
  std::ofstream(process("swamp-server-000", "", -1) / "run.json") << "damaged";
  const auto server = process("swamp-server-002", "1234", -1);
  EXPECT_THAT(processes_of(first), ElementsAre(first, server));
}

TEST_F(RunsOfAJob, LeaveOutWhatAnEarlierJobLeft) {
  const auto first = process("a", "1234", 0);
  process("a-worker1", "5678", 1);
  process("a-server", "", -1);
  EXPECT_THAT(processes_of(first), ElementsAre(first));
  // Where the job has no name, its settings tell.
  const auto unnamed = process("b", "", 0);
  process("b-worker1", "", 1, "another");
  EXPECT_THAT(processes_of(unnamed), ElementsAre(unnamed));
}

TEST_F(RunsOfAJob, SayWhenOneProcessAloneIsNamed) {
  const auto first = process("a", "1234", 0);
  const auto other = process("a-worker1", "1234", 1);
  const auto server = process("a-server", "1234", -1);
  EXPECT_THAT(read_run(other).notes,
              ElementsAre(HasSubstr(other.string() + " is one process's part of the job " +
                                    first.string())));
  EXPECT_EQ(read_run(server.string() + "/").part_of, first);
  std::ofstream(process("c", "1234", 0) / "run.json") << "{";
  const auto alone = process("c-worker1", "1234", 1);
  EXPECT_THAT(read_run(alone).notes, IsEmpty());
}

TEST(NaturalOrder, ReadsNumbersAsNumbers) {
  const std::vector<std::string> ordered = {"",      "a",    "a1",     "a01",  "a2",
                                            "a10",   "a10b", "b0",     "b0_1", "b0.05",
                                            "b0.25", "b0.5", "b0.5_1", "b1",   "b1.0"};
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    for (std::size_t j = 0; j < ordered.size(); ++j) {
      const bool less = natural_less(ordered[i], ordered[j]);
      if (ordered[i] == "a01" || ordered[j] == "a01") {
        EXPECT_NE(less, natural_less(ordered[j], ordered[i]) || i == j) << "an order of all";
        continue;
      }
      EXPECT_EQ(less, i < j) << ordered[i] << " " << ordered[j];
    }
  }
}

}  // namespace
}  // namespace cohort::report
