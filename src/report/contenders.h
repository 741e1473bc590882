// Runs as contenders for the best: those that differ only in their seeds as one. With the words
// that sentences about them need.
#pragma once

#include <string>
#include <vector>

#include "report/run_differences.h"
#include "report/run_result.h"

namespace cohort::report {

// What a conclusion is drawn from; the vectors are as long as `runs`.
struct Evidence {
  const std::vector<RunRecords>& runs;
  const std::vector<std::string>& labels;
  const std::vector<RunResult>& results;
  const std::vector<Difference>& differences;
};

// One or more runs of equal settings, judged as one.
struct Contender {
  std::string name;  // the run's label; of several, their settings
  Repetition repetition;
  Spread top1;
  double error = 0;  // standard error of the mean: of the test set and, where known, of the seeds
};

// The run's label; of several their settings: "lr 0.1, batch 32, mean of 3".
std::string name_of(const Repetition& repetition, const Evidence& evidence);

// Those that have an accuracy, the highest first.
std::vector<Contender> contenders_of(const Evidence& evidence);

double error_of_difference(const Contender& a, const Contender& b);

// Whether `a` is above `b` by more than twice the standard error of their difference.
bool significantly_above(const Contender& a, const Contender& b);

// How much runs of one setting differ by their seeds, over all settings that were run more than
// once; 0: none was.
double deviation_of_seeds(const std::vector<Contender>& contenders);

std::string percent(double share);                         // 98.71%
std::string percent(const Spread& spread);                 // 98.71 ± 0.12%; of one 98.71%
std::string listed(std::vector<std::string> parts);        // a, b and c
std::string counted(std::size_t count, const char* what);  // 1 run, 3 runs

}  // namespace cohort::report
