// What was run, on what, and how: the title page of a report.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "report/run_records.h"

namespace cohort::report {

struct Fact {
  std::string name;
  std::string value;
};

// Model, data, method, workers, training, machine, versions, time: each as all runs say it, those
// that differ one after the other. Facts that no run tells are left out.
std::vector<Fact> facts_of(const std::vector<RunRecords>& runs);

// For each run its label and the command line that began it, as a shell takes it. Runs of one
// command share an entry.
std::vector<Fact> commands_of(const std::vector<RunRecords>& runs,
                              const std::vector<std::string>& labels);

// What the runs say, each text once, in their order: "mnist; cifar-10". Only the first few.
std::string said_by(const std::vector<RunRecords>& runs,
                    const std::function<std::string(const RunRecords&)>& what);

}  // namespace cohort::report
