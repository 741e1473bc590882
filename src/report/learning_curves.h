// The curves of several runs as one figure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/chart.h"
#include "report/run_records.h"

namespace cohort::report {

enum class CurvesBy {
  kRun,     // one curve for each run
  kWorker,  // one for each worker of each run, and one for its server
};

struct CurveOptions {
  std::vector<std::string> y = {"train-loss", "test-top1"};  // a panel each, names of measures()
  std::string x = "epoch";                                   // a name of courses()
  std::optional<std::string> title = {};  // else model and data set, when all runs share them
  std::vector<std::string> labels = {};   // one for each run; else usual_labels()
  CurvesBy by = CurvesBy::kRun;
  std::size_t columns = 0;           // of panels; 0: as many as look well
  std::optional<double> width = {};  // else of usual_size()
  std::optional<double> height = {};
  int smooth = 0;  // curves of training show the mean of so many records around; 0: usual_window()
  bool log_y = false;  // powers of ten at equal distances, except for percentages
};

struct LearningCurves {
  Figure figure;
  std::vector<std::string> notes;  // for people: what is not in the picture, and why
};

// Throws ConfigError on unknown names, a number of labels that is not that of the runs, and when no
// run has a value to draw. Runs without one are noted and keep their place in the legend.
LearningCurves learning_curves(const std::vector<RunRecords>& runs, const CurveOptions& options);

// One run's dumped models as they scored on the test set: loss above accuracy, one curve for each
// worker, and the server's, thick and dark, with its best values in the legend. `x` is a name of
// courses(). Throws ConfigError when no model has been evaluated.
LearningCurves dump_curves(const RunRecords& run, std::optional<std::string> title = {},
                           const std::string& x = "seconds");

// The options of dump_curves(), for figures that differ a little from it.
CurveOptions dump_curve_options();

// The method's name when the runs differ in nothing that matters but their methods; else the
// folder's name, or its path where two folders have the same name.
std::vector<std::string> usual_labels(const std::vector<RunRecords>& runs);

// How many records are taken together so that a curve of `records` of them shows its course and not
// the noise of single batches: one fiftieth, an odd number; 1 for short curves.
int usual_window(std::size_t records);

// Each value replaced by the mean of up to `window` (at least 1) values around it. Values that are
// not finite stay, and do not count.
std::vector<Point> smoothed(const std::vector<Point>& points, int window);

}  // namespace cohort::report
