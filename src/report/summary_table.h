// The summary of a report: one row for each run.
#pragma once

#include <string>
#include <vector>

#include "report/contenders.h"

namespace cohort::report {

struct TableColumn {
  std::string title;
  bool is_number = false;  // stands at the right
};

struct Table {
  std::vector<TableColumn> columns;
  std::vector<std::vector<std::string>> rows;  // as long as columns
};

// Label, method and workers where they differ, the first kMaxSettings other settings that differ,
// and the results. Columns that no run has a value for are left out, and so is the best accuracy
// where it is the last one everywhere.
Table summary_of(const Evidence& evidence);

// What a reader of the table needs to know: further settings that differ, what is measured.
std::vector<std::string> remarks_of(const Evidence& evidence);

inline constexpr std::size_t kMaxSettings = 3;

}  // namespace cohort::report
