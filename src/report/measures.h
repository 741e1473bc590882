// What can be drawn of a run: the one table of names for the axes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "report/axis.h"
#include "report/canvas.h"
#include "report/run_records.h"

namespace cohort {

enum class MeasureKind {
  kExact,  // each value counts as it is
  kNoisy,  // of few batches: the mean of some tells more
  kTotal,  // the sum of the values so far
};

// A value that changes in the course of a run, for the vertical axis.
struct Measure {
  std::string name;   // "test-top1"
  std::string title;  // "Test accuracy (%)"
  Interval limits;    // where its values can be
  // Of the records of all ranks as one (over_ranks). Not a number where the run has no such value.
  std::variant<double (*)(const StepRecord&), double (*)(const EvaluationRecord&)> value;
  MeasureKind kind = MeasureKind::kExact;

  // A share of 100 rather than a quantity.
  bool is_percentage() const { return limits.high == 100; }
};

// How far a run had come, for the horizontal axis.
struct Course {
  std::string name;   // "epoch"
  std::string title;  // "epoch"
  double (*of_step)(const StepRecord&);
  double (*of_evaluation)(const EvaluationRecord&);
};

const std::vector<Measure>& measures();
const std::vector<Course>& courses();

// Throw ConfigError listing the known names.
const Measure& find_measure(std::string_view name);
const Course& find_course(std::string_view name);

// "train-loss, train-top1, ...", for help texts.
std::string measure_names();

// The records of several ranks about the same stretch of training as one: means of losses and
// shares weighted by samples, sums of samples and bytes, means of durations, the furthest step,
// epoch and time. No two of the records that become one are of the same rank. The result is in the
// order of steps.
std::vector<StepRecord> over_ranks(std::vector<StepRecord> records);
std::vector<EvaluationRecord> over_ranks(std::vector<EvaluationRecord> records);

// The measure over the course of a run, by ascending x. Points whose x is not a number are left
// out; y may be not a number.
std::vector<Point> curve_of(const RunRecords& run, const Measure& measure, const Course& course);

}  // namespace cohort
