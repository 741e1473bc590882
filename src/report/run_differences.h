// In what runs differ, and which of them are repetitions of one another.
#pragma once

#include <string>
#include <vector>

#include "report/run_records.h"

namespace cohort::report {

struct Difference {
  std::string name;                 // of the setting
  std::vector<std::string> values;  // one for each run; "" where the run does not say, or where its
                                    // method has no use for the setting
};

// The settings that have more than one value among the runs, as the user set them (what the program
// found for "auto" may differ from seed to seed and is no other setting), those that matter most
// first and the seed last. Settings that say where things lie or how a job finds together, not how
// it trains, are left out, and so are settings that some runs lack and the others agree on.
std::vector<Difference> differing_settings(const std::vector<RunRecords>& runs);

// Runs that differ in nothing but their seeds.
struct Repetition {
  std::vector<std::size_t> runs;    // numbers, ascending
  std::vector<std::string> values;  // of the differences, the seed's left out
};

// Every run is in one, in the order of their first runs. Runs of the same seed are repetitions too.
std::vector<Repetition> repetitions(std::size_t runs, const std::vector<Difference>& differences);

}  // namespace cohort::report
