// Which curves a figure of learning curves has: the runs, or their workers and servers.
#pragma once

#include <string>
#include <vector>

#include "report/curve_style.h"
#include "report/learning_curves.h"
#include "report/measures.h"

namespace cohort::report {

// One curve of each panel.
struct Series {
  const RunRecords* run = nullptr;
  Owner owner;
  std::string label;
  CurveStyle style;
};

// In the order of the runs, of their workers, then of the server. The runs must outlive the result.
// A server stands there only where models it dumped are drawn, with the best of them in its label.
std::vector<Series> series_of(const std::vector<RunRecords>& runs, const CurveOptions& options);

Curve make_curve(const Series& series, const Measure& measure, const CurveOptions& options);

// "runs/a, worker 1", for notes.
std::string name_of(const Series& series);

}  // namespace cohort::report
