#include "report/learning_curves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "report/measures.h"

namespace cohort::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

RunRecords run_of(const std::string& folder, const std::string& method, int records = 4) {
  RunRecords run;
  run.folder = folder;
  run.config = {
      {"method", method}, {"model", "mlp"}, {"data", "mnist"}, {"lr", 0.1}, {"workers", 1}};
  for (int i = 1; i <= records; ++i) {
    metrics::StepRecord record;
    record.step = i;
    record.epoch = i;
    record.time_seconds = 10.0 * i;
    record.loss = 1.0 / i;
    run.steps.push_back(record);
  }
  run.evaluations = {{.time_seconds = 10, .step = 1, .epoch = 1, .split = "test", .top1 = 0.5}};
  return run;
}

std::string refusal(const std::vector<RunRecords>& runs, const CurveOptions& options) {
  try {
    learning_curves(runs, options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Labels, AreMethodsWhereNothingElseThatMattersDiffers) {
  std::vector<RunRecords> runs = {run_of("runs/a", "local"), run_of("runs/b", "all-reduce")};
  runs[1].config["workers"] = 4;
  EXPECT_THAT(usual_labels(runs), ElementsAre("local", "all-reduce"));
  runs[1].config["lr"] = 0.2;
  EXPECT_THAT(usual_labels(runs), ElementsAre("a", "b"));
}

TEST(Labels, AreFoldersElseAndPathsWhereThoseAreTheSame) {
  EXPECT_THAT(usual_labels({run_of("runs/a", "local")}), ElementsAre("a"));
  EXPECT_THAT(usual_labels({run_of("runs/a/", "local"), run_of("runs/b/.", "local")}),
              ElementsAre("a", "b"));
  EXPECT_THAT(usual_labels({run_of("x/a", "local"), run_of("y/a", "local")}),
              ElementsAre("x/a", "y/a"));
  EXPECT_THAT(usual_labels({run_of("x/a", ""), run_of("y/b", "local")}), ElementsAre("a", "b"));
}

TEST(LearningCurves, SayWhatWasEvaluatedOn) {
  RunRecords run = run_of("runs/a", "local");
  run.config["eval-split"] = "validation";
  const CurveOptions options{.y = {"test-top1"}};
  EXPECT_EQ(learning_curves({run}, options).figure.panels[0].title, "Validation accuracy (%)");
  EXPECT_EQ(learning_curves({run, run_of("runs/b", "local")}, options).figure.panels[0].title,
            "Test or validation accuracy (%)");
}

TEST(LearningCurves, HaveAPanelForEachMeasureAndACurveForEachRun) {
  const auto result = learning_curves({run_of("runs/a", "local"), run_of("runs/b", "local", 2)},
                                      {.y = {"train-loss", "test-top1", "lr"}});
  const Figure& figure = result.figure;
  EXPECT_EQ(figure.title, "mlp on mnist");
  EXPECT_THAT(figure.labels, ElementsAre("a", "b"));
  ASSERT_EQ(figure.panels.size(), 3U);
  EXPECT_EQ(figure.panels[1].title, "Test accuracy (%)");
  ASSERT_EQ(figure.panels[0].curves.size(), 2U);
  EXPECT_THAT(figure.panels[0].curves[1].points, ElementsAre(Point{1, 1}, Point{2, 0.5}));
  EXPECT_THAT(figure.panels[1].curves[0].points, ElementsAre(Point{1, 50}));
  EXPECT_GT(figure.size.width, figure.size.height);
  EXPECT_THAT(result.notes, IsEmpty());
}

TEST(LearningCurves, TakeWhatTheUserAsksFor) {
  const auto result =
      learning_curves({run_of("runs/a", "local")}, {.y = {"train-loss", "train-top1"},
                                                    .title = "mine",
                                                    .labels = {"baseline"},
                                                    .width = 700,
                                                    .height = 333,
                                                    .log_y = true});
  EXPECT_EQ(result.figure.title, "mine");
  EXPECT_THAT(result.figure.labels, ElementsAre("baseline"));
  EXPECT_EQ(result.figure.size.width, 700);
  EXPECT_EQ(result.figure.size.height, 333);
  EXPECT_EQ(result.figure.panels[0].y_scale, Scale::kLogarithmic);
  EXPECT_EQ(result.figure.panels[1].y_scale, Scale::kLinear) << "a percentage";
}

TEST(LearningCurves, LongTimesAreInReadableUnits) {
  RunRecords run = run_of("runs/a", "local");
  const CurveOptions by_time = {.x = "seconds"};
  EXPECT_EQ(learning_curves({run}, by_time).figure.panels[0].x_title, "seconds");
  run.steps.back().time_seconds = 1200;
  const auto minutes = learning_curves({run}, by_time).figure;
  EXPECT_EQ(minutes.panels[0].x_title, "minutes");
  EXPECT_DOUBLE_EQ(minutes.panels[0].curves[0].points.back().x, 20);
  EXPECT_DOUBLE_EQ(minutes.panels[1].curves[0].points.back().x, 10.0 / 60) << "all panels alike";
  run.steps.back().time_seconds = 36000;
  EXPECT_EQ(learning_curves({run}, by_time).figure.panels[0].x_title, "hours");
}

TEST(LearningCurves, SayWhatIsMissing) {
  RunRecords fresh = run_of("runs/fresh", "local", 0);
  fresh.evaluations.clear();
  RunRecords diverged = run_of("runs/diverged", "local");
  diverged.steps.back().loss = NAN;
  diverged.notes = {"from reading"};
  const auto result = learning_curves({fresh, diverged}, {});
  EXPECT_THAT(result.notes, ElementsAre("from reading", HasSubstr("runs/fresh has no train-loss"),
                                        HasSubstr("not a number in 1 of 4"),
                                        HasSubstr("runs/fresh has no test-top1")));
  EXPECT_THAT(result.figure.labels, ElementsAre("fresh", "diverged"));
  EXPECT_THAT(refusal({fresh}, {}), HasSubstr("runs/fresh has no records yet"));
  EXPECT_THAT(refusal({diverged}, {.y = {"staleness"}}), HasSubstr("no value of staleness"));
}

TEST(LearningCurves, RefuseWhatMakesNoSense) {
  const std::vector<RunRecords> runs = {run_of("runs/a", "local")};
  EXPECT_THAT(refusal(runs, {.y = {"nonsense"}}), HasSubstr("train-loss"));
  EXPECT_THAT(refusal(runs, {.x = "nonsense"}), HasSubstr("epoch, step, seconds"));
  EXPECT_THAT(refusal(runs, {.labels = {"a", "b"}}), HasSubstr("1 runs and 2 labels"));
  EXPECT_THAT(refusal({}, {}), HasSubstr("run directory"));
}

TEST(Smoothing, IsTheMeanOfTheNeighbours) {
  const std::vector<Point> points = {{1, 3}, {2, 6}, {3, NAN}, {4, 9}, {5, 1}};
  const auto result = smoothed(points, 3);
  EXPECT_EQ(result[0], (Point{1, 4.5}));
  EXPECT_EQ(result[1], (Point{2, 4.5}));
  EXPECT_TRUE(std::isnan(result[2].y)) << "a gap stays a gap";
  EXPECT_EQ(result[3], (Point{4, 5}));
  EXPECT_EQ(result[4], (Point{5, 5}));
  EXPECT_EQ(smoothed(points, 1)[3], points[3]);
  EXPECT_THAT(smoothed({}, 5), IsEmpty());
  for (const Point& point : smoothed({{0, 1}, {1, 2}, {2, 3}}, 1000)) EXPECT_EQ(point.y, 2);
}

TEST(Smoothing, IsForNoisyMeasuresAndKeepsTheRecordsBehind) {
  CurveOptions options{.y = {"train-loss", "test-top1", "lr"}};
  const std::vector<RunRecords> runs = {run_of("runs/a", "local", 300)};
  const auto automatic = learning_curves(runs, options).figure;
  EXPECT_EQ(automatic.panels[0].curves[0].faint.size(), 300U);
  EXPECT_DOUBLE_EQ(automatic.panels[0].curves[0].points[0].y, (1 + 1 / 2. + 1 / 3. + 1 / 4.) / 4)
      << "300 records: windows of 7";
  EXPECT_THAT(automatic.panels[1].curves[0].faint, IsEmpty());
  EXPECT_THAT(automatic.panels[2].curves[0].faint, IsEmpty());
  options.smooth = 1;
  EXPECT_THAT(learning_curves(runs, options).figure.panels[0].curves[0].faint, IsEmpty());
  EXPECT_EQ(usual_window(40), 1);
  EXPECT_EQ(usual_window(100), 3);
  EXPECT_EQ(usual_window(10000000), 1001);
}

TEST(LearningCurves, ByWorkerHaveACurveForEachOfThem) {
  RunRecords run = run_of("runs/a", "all-reduce");
  for (metrics::StepRecord record : std::vector<metrics::StepRecord>(run.steps)) {
    record.rank = 3;
    record.loss *= 2;
    run.steps.push_back(record);
  }
  CurveOptions options{.y = {"train-loss"}, .by = CurvesBy::kWorker};
  const Figure figure = learning_curves({run}, options).figure;
  EXPECT_THAT(figure.labels, ElementsAre("worker 0", "worker 3"));
  EXPECT_EQ(figure.panels[0].curves[1].points[0], (Point{1, 2}));
  const auto both = learning_curves({run, run_of("runs/b", "local")}, options).figure;
  EXPECT_THAT(both.labels,
              ElementsAre("all-reduce, worker 0", "all-reduce, worker 3", "local, worker 0"));
  options.y = {"staleness"};
  EXPECT_THAT(refusal({run}, options), HasSubstr("no value of staleness"));
}

TEST(LearningCurves, SpeedsBeginAtZero) {
  RunRecords run = run_of("runs/a", "local");
  for (metrics::StepRecord& record : run.steps) {
    record.samples = 1000 + record.step;
    record.compute_seconds = 1;
  }
  const auto figure = learning_curves({run}, {.y = {"samples-per-second"}}).figure;
  EXPECT_EQ(lay_out(figure)[0].y.range.low, 0);
}

}  // namespace
}  // namespace cohort::report
