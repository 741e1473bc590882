#include "report/run_records.h"

#include <gmock/gmock.h>

#include "core/error.h"
#include "report/run_folder.h"

namespace cohort {
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

  StepRecord step_ = {.time_seconds = 1.5, .rank = 0, .step = 50, .epoch = 0.5, .loss = 2};
  EvaluationRecord evaluation_ = {.step = 100, .epoch = 1, .split = "test", .top1 = 0.75};
};

TEST_F(ReadRun, GivesWhatWasWritten) {
  const auto folder = write_run("a", R"({"method": "local", "batch": 64})",
                                lines(EventRecord{.event = "start"}, step_, evaluation_));
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
  EvaluationRecord other = evaluation_;
  other.split = "train";
  EXPECT_THAT(read_run(write_run("a", "{}", lines(other, evaluation_))).evaluations,
              ElementsAre(evaluation_));
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

}  // namespace
}  // namespace cohort
