// A report of one or more runs: what was run, what came out, the curves, and what follows. Made
// once and written in any format (report_pages.h, html_report.h). Pure: nothing is read but the
// runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/chart.h"
#include "report/report_facts.h"
#include "report/run_records.h"
#include "report/summary_table.h"

namespace cohort::report {

struct Report {
  std::string title;
  std::string created;                  // when the report was made, "" to leave it out
  std::vector<Fact> facts;              // what was run, on what
  std::vector<Fact> commands;           // the run's label, and how it was begun
  Table summary;                        // a row for each run
  std::vector<std::string> remarks;     // on the table
  std::vector<Figure> runs;             // one for each run that has something to draw
  std::vector<Figure> comparisons;      // all runs in each
  std::vector<std::string> conclusion;  // sentences
  std::vector<std::string> notes;       // what was skipped or is missing
};

struct ReportOptions {
  std::optional<std::string> title = {};  // else model and data set, or how many runs
  std::vector<std::string> labels = {};   // one for each run; else usual_labels()
  std::string created = {};
};

// Throws ConfigError when there is no run, no record in any of them, or when the number of labels
// is not that of the runs.
Report make_report(const std::vector<RunRecords>& runs, const ReportOptions& options);

}  // namespace cohort::report
