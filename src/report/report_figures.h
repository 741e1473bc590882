// The figures of a report.
#pragma once

#include <string>
#include <vector>

#include "report/chart.h"
#include "report/run_differences.h"

namespace cohort::report {

// One for each run that has something to draw: its dumped models by worker and server, or else its
// training loss by worker and test accuracy. Runs without are noted. Figures of a row are of one
// size.
std::vector<Figure> figures_of_runs(const std::vector<RunRecords>& runs,
                                    const std::vector<std::string>& titles,
                                    std::vector<std::string>& notes);

// All runs in each: accuracy over epochs and seconds, the loss, and what else they have records of.
std::vector<Figure> comparison_figures(const std::vector<RunRecords>& runs,
                                       const std::vector<std::string>& labels);

}  // namespace cohort::report
