#include "report/dump_scores.h"

#include <gmock/gmock.h>

#include "core/error.h"
#include "report/course.h"
#include "report/learning_curves.h"
#include "report/measures.h"
#include "report/run_folder.h"
#include "report/run_result.h"

namespace cohort::report {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class Dumps : public RunFolderTest {
 protected:
  void SetUp() override {
    RunFolderTest::SetUp();
    run_ = write_run("a", R"({"method": "swamp"})", "");
    std::ofstream(run_ / "run.json") << R"({"config": {}, "steps_per_epoch": 100})";
  }

  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((run_ / path).parent_path());
    std::ofstream(run_ / path) << text;
  }
  void worker(int rank, int epoch, int batch, double seconds, const std::string& score) const {
    write("dumps/trainer_" + std::to_string(rank) + "/model_params_trainer_" +
              std::to_string(rank) + "_epoch_" + std::to_string(epoch) + "_batch_" +
              std::to_string(batch) + "_sec_" + std::to_string(static_cast<int>(seconds)) + ".eval",
          score + "_" + std::to_string(seconds));
  }
  void server(int version, double seconds, const std::string& score) const {
    write("dumps/ps/model_params_ps_model_version_" + std::to_string(version) + "_sec_" +
              std::to_string(static_cast<int>(seconds)) + ".eval",
          score + "_" + std::to_string(seconds));
  }

  std::filesystem::path run_;
};

TEST_F(Dumps, AreReadByOwnerInTheOrderOfTime) {
  worker(0, 0, 100, 20, "0.5_0.8");
  worker(0, 0, 50, 9, "1.5_0.4");
  worker(10, 0, 0, 1, "nan_0.1");
  server(2, 30, "0.4_0.9");
  server(1, 5, "2.0_0.2");
  // As the Swamp experiment has them: without the folder dumps/.
  write("trainer_1/model_params_trainer_1_epoch_0_batch_0_sec_0.eval", "2.3_0.1_0.5\n");
  const DumpScores scores = read_dump_scores(run_);
  ASSERT_THAT(scores.workers, SizeIs(3));
  ASSERT_THAT(scores.workers.at(0), SizeIs(2));
  EXPECT_EQ(scores.workers.at(0)[0].score, (storage::DumpScore{1.5, 0.4, 9}));
  EXPECT_EQ(scores.workers.at(0)[1].score.loss, 0.5);
  EXPECT_EQ(scores.workers.at(1)[0].score.seconds, 0.5);
  EXPECT_TRUE(std::isnan(scores.workers.at(10)[0].score.loss));
  ASSERT_THAT(scores.server, SizeIs(2));
  EXPECT_EQ(scores.server[0].name.version, 1);
  EXPECT_EQ(scores.last_seconds(), 30);
  EXPECT_THAT(scores.notes, IsEmpty());
}

TEST_F(Dumps, OfAPartOfTheSetSaySo) {
  worker(0, 0, 50, 9, "1.5_0.4");
  EXPECT_EQ(read_dump_scores(run_).fewest_samples, 0);
  write("dumps/ps/model_params_ps_model_version_1_sec_3.eval", "0.5_0.8_3.0_320");
  write("dumps/ps/model_params_ps_model_version_2_sec_4.eval", "0.4_0.9_4.0_640");
  const DumpScores scores = read_dump_scores(run_);
  EXPECT_EQ(scores.fewest_samples, 320);
  EXPECT_THAT(scores.notes, ElementsAre(AllOf(HasSubstr("2 scores of dumped models are not of the"),
                                              HasSubstr("as few as 320 samples"))));
  EXPECT_THAT(scores.notes[0], HasSubstr("those models were deleted since"));
  write("dumps/ps/model_params_ps_model_version_1_sec_3.safetensors", "a model");
  EXPECT_THAT(read_dump_scores(run_).notes[0], HasSubstr("evaluates the 1 of those models again"));
  write("dumps/ps/model_params_ps_model_version_2_sec_4.safetensors", "a model");
  EXPECT_THAT(read_dump_scores(run_).notes[0],
              HasSubstr("`cohort eval` evaluates those models again"));
  const RunResult result = result_of(read_run(run_));
  EXPECT_EQ(result.test_samples, 320) << "what its error is computed from";
}

TEST_F(Dumps, WhatIsForeignOrDamagedIsSkippedNamedAndCounted) {
  worker(0, 0, 50, 9, "1.5_0.4");
  write("dumps/trainer_0/model_params_trainer_0_epoch_0_batch_60_sec_9.eval", "");
  write("dumps/trainer_0/model_params_trainer_0_epoch_0_batch_70_sec_9.eval", "0.1_7_9");
  write("dumps/trainer_0/model_params_trainer_1_epoch_0_batch_80_sec_9.eval", "0.1_0.5_9");
  write("dumps/trainer_0/notes.txt", "hello");
  write("dumps/ps/model_params_ps_model_version_3_sec_9.safetensors", "a model");
  const DumpScores scores = read_dump_scores(run_);
  EXPECT_THAT(scores.workers.at(0), SizeIs(1));
  EXPECT_THAT(scores.server, IsEmpty());
  EXPECT_EQ(scores.unscored, 1U);
  EXPECT_THAT(scores.notes,
              ElementsAre(AllOf(HasSubstr("skipped 2 foreign files"), HasSubstr("notes.txt"),
                                HasSubstr("model_params_trainer_1_epoch_0_batch_80")),
                          AllOf(HasSubstr("skipped 2 damaged scores"), HasSubstr("batch_60_sec_9")),
                          HasSubstr("1 dumped models have no score yet")));
  EXPECT_THAT(read_run(run_).notes, SizeIs(3)) << "the run tells";
}

TEST_F(Dumps, ARunWithoutAnyIsFine) {
  EXPECT_TRUE(read_dump_scores(run_).empty());
  EXPECT_TRUE(read_dump_scores(run_ / "absent").empty());
  EXPECT_EQ(read_dump_scores(run_).last_seconds(), 0);
}

TEST_F(Dumps, StandWhereTheirRunWas) {
  worker(0, 0, 50, 10, "1_0.5");
  worker(0, 1, 50, 30, "0.5_0.6");
  worker(1, 0, 50, 20, "1_0.5");
  worker(1, 1, 50, 40, "0.5_0.6");
  server(1, 20, "0.4_0.9");
  server(2, 100, "0.3_0.9");
  const RunRecords run = read_run(run_);
  const auto places = [&](const char* course, Owner owner) {
    std::vector<double> x;
    for (const Point& point :
         curve_of(run, find_measure("dump-loss"), find_course(course), owner)) {
      x.push_back(point.x);
    }
    return x;
  };
  EXPECT_THAT(places("epoch", {Owner::Kind::kWorker, 0}), ElementsAre(0.5, 1.5));
  EXPECT_THAT(places("step", {Owner::Kind::kWorker, 0}), ElementsAre(50, 150));
  EXPECT_THAT(places("seconds", {Owner::Kind::kServer, 0}), ElementsAre(20, 100));
  // At 20 s worker 0 is halfway from 0.5 to 1.5 and worker 1 at 0.5; at 100 s both at their ends.
  EXPECT_THAT(places("epoch", {Owner::Kind::kServer, 0}), ElementsAre(0.75, 1.5));
  EXPECT_THAT(places("seconds", {}), ElementsAre(20, 100)) << "the run's are the server's";
}

TEST_F(Dumps, AreDrawnByWorkerWithTheServersBestInTheLegend) {
  for (int batch = 0; batch < 100; batch += 10) {
    worker(0, 0, batch, batch + 1, "0.5_0.8");
    worker(1, 0, batch, batch + 1, "0.6_0.7");
  }
  server(1, 5, "2.0_0.2");
  server(2, 20, "0.0405_0.9871");
  server(3, 30, "0.05_0.98");
  const Figure figure = dump_curves(read_run(run_), "swamp training").figure;
  EXPECT_EQ(figure.title, "swamp training");
  EXPECT_THAT(figure.labels, ElementsAre("worker 0", "worker 1",
                                         "server (lowest loss 0.0405, best accuracy 98.7%)"));
  ASSERT_THAT(figure.panels, SizeIs(2));
  EXPECT_EQ(figure.panels[0].title, "Test loss");
  EXPECT_EQ(figure.panels[1].title, "Test accuracy (%)");
  EXPECT_EQ(figure.columns, 1U);
  EXPECT_EQ(figure.panels[1].curves[2].points[1], (Point{20, 98.71}));
  EXPECT_EQ(figure.panels[0].curves[2].held_until, 91) << "until the last dump of any worker";
  EXPECT_FALSE(figure.panels[0].curves[0].held_until);
  EXPECT_GT(figure.styles[2].width, figure.styles[0].width);
}

TEST_F(Dumps, WithoutScoresThereIsNothingToDraw) {
  EXPECT_THROW(dump_curves(read_run(run_), ""), ConfigError);
}

TEST_F(Dumps, WithoutStepsOfAnEpochOnlyTimeIsKnown) {
  std::ofstream(run_ / "run.json") << R"({"config": {}})";
  worker(0, 0, 50, 10, "1_0.5");
  const RunRecords run = read_run(run_);
  EXPECT_THAT(curve_of(run, find_measure("dump-loss"), find_course("epoch")), IsEmpty());
  EXPECT_THAT(curve_of(run, find_measure("dump-loss"), find_course("seconds")), SizeIs(1));
}

}  // namespace
}  // namespace cohort::report
