// What can be drawn of a run: the one table of names for the axes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "metrics/over_ranks.h"
#include "report/axis.h"
#include "report/canvas.h"
#include "report/course.h"
#include "report/run_records.h"

namespace cohort::report {

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
  std::variant<double (*)(const metrics::StepRecord&), double (*)(const metrics::EvaluationRecord&),
               double (*)(const storage::DumpScore&)>
      value;
  MeasureKind kind = MeasureKind::kExact;
  Scale scale = Scale::kLinear;  // on which it is usually read

  bool is_of_dumps() const { return value.index() == 2; }

  // A rate or an amount, whose heights are compared rather than its shape.
  bool is_amount() const {
    return name == "samples-per-second" || name == "exchange-share" ||
           name.ends_with("megabytes-sent");
  }

  // A loss or an accuracy: far from the rest while training begins.
  bool is_score() const { return name.ends_with("-loss") || name.ends_with("-top1"); }

  // A share of 100 rather than a quantity.
  bool is_percentage() const { return limits.high == 100; }
};

// Whose part of a run a curve shows.
struct Owner {
  enum class Kind {
    kRun,     // all workers as one; of dumped models the server's, or the first worker's
    kWorker,  // one of them
    kServer,  // only dumped models are its own
  };
  Kind kind = Kind::kRun;
  Rank worker = 0;

  friend bool operator==(const Owner&, const Owner&) = default;
};

const std::vector<Measure>& measures();

// Throws ConfigError listing the known names.
const Measure& find_measure(std::string_view name);

// "train-loss, train-top1, ...", for help texts.
std::string measure_names();

// The measure over the course of a run, by ascending x. Points whose x is not a number are left
// out; y may be not a number.
std::vector<Point> curve_of(const RunRecords& run, const Measure& measure, const Course& course,
                            Owner owner = {});

// Whether curve_of() shows models of a server: each counts until the next one comes.
bool is_of_server(const RunRecords& run, const Measure& measure, Owner owner);

}  // namespace cohort::report
