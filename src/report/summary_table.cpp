#include "report/summary_table.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/text.h"
#include "report/axis.h"

namespace cohort::report {
namespace {

constexpr const char* kAbsent = "–";

std::string percent_cell(std::optional<double> share) {
  return share ? fixed_number(100 * *share, 2) : kAbsent;
}

std::string number_cell(std::optional<double> value) {
  if (!value) return kAbsent;
  return std::isfinite(*value) ? short_number(*value) : "nan";
}

bool has_dumps(const Evidence& evidence) {
  return std::any_of(evidence.runs.begin(), evidence.runs.end(),
                     [](const RunRecords& run) { return !run.dumps.workers.empty(); });
}

struct Row {
  std::size_t number = 0;
  const std::string& label;
  const RunRecords& run;
  const RunResult& result;
};

// One column of the summary, and what it says of a run.
struct SummaryColumn {
  TableColumn head;
  std::function<std::string(const Row&)> cell;
};

using Columns = std::vector<SummaryColumn>;
using Share = std::optional<double> RunResult::*;

bool differs(const Evidence& evidence, const char* name) {
  const auto& runs = evidence.runs;
  return runs.size() == 1 || std::any_of(runs.begin(), runs.end(), [&](const RunRecords& run) {
           return run.setting(name) != runs.front().setting(name);
         });
}

void add_settings(const Evidence& evidence, Columns& columns) {
  columns.push_back({{"Run"}, [](const Row& row) { return row.label; }});
  if (differs(evidence, "method")) {
    columns.push_back({{"Method"}, [](const Row& row) { return row.run.setting("method"); }});
  }
  if (differs(evidence, "workers")) {
    columns.push_back(
        {{"Workers", true}, [](const Row& row) { return row.run.setting("workers"); }});
  }
  std::size_t settings = 0;
  for (const Difference& difference : evidence.differences) {
    if (difference.name == "method" || difference.name == "workers") continue;
    if (settings++ == kMaxSettings) break;
    columns.push_back({{difference.name}, [&difference](const Row& row) {
                         const std::string& value = difference.values[row.number];
                         return value.empty() ? std::string(kAbsent) : value;
                       }});
  }
}

void add_accuracies(const Evidence& evidence, Columns& columns) {
  const auto& results = evidence.results;
  const auto add = [&](const char* title, Share share) {
    if (std::any_of(results.begin(), results.end(),
                    [&](const RunResult& result) { return (result.*share).has_value(); })) {
      columns.push_back(
          {{title, true}, [share](const Row& row) { return percent_cell(row.result.*share); }});
    }
  };
  add("Last acc. (%)", &RunResult::last_top1);
  if (std::any_of(results.begin(), results.end(),
                  [](const RunResult& result) { return result.best_top1 != result.last_top1; })) {
    add("Best acc. (%)", &RunResult::best_top1);
  }
  add("Server's acc. (%)", &RunResult::server_top1);
  add("Workers' acc. (%)", &RunResult::workers_top1);
}

void add_measures(const Evidence& evidence, Columns& columns) {
  const std::string split = evaluated_on(evidence.runs);
  columns.push_back({{split == "test"         ? "Test loss"
                      : split == "validation" ? "Validation loss"
                                              : "Loss",
                      true},
                     [](const Row& row) { return number_cell(row.result.loss()); }});
  if (has_dumps(evidence)) {
    columns.push_back({{"Shocks", true}, [](const Row& row) {
                         return row.run.dumps.workers.empty()
                                    ? std::string(kAbsent)
                                    : std::to_string(row.result.shock_count());
                       }});
  }
  columns.push_back(
      {{"Time (s)", true}, [](const Row& row) { return number_cell(row.result.seconds); }});
  columns.push_back({{"Samples/s", true}, [](const Row& row) {
                       const auto& speed = row.result.samples_per_second;
                       return speed ? fixed_number(*speed, 0) : std::string(kAbsent);
                     }});
  columns.push_back(
      {{"Sent (MB)", true}, [](const Row& row) { return number_cell(row.result.megabytes_sent); }});
  // Servers send as well, so that their workers receive what no worker sent.
  if (std::any_of(evidence.results.begin(), evidence.results.end(), [](const RunResult& result) {
        return std::abs(result.megabytes_received - result.megabytes_sent) >
               0.01 * result.megabytes_sent;
      })) {
    columns.push_back({{"Received (MB)", true},
                       [](const Row& row) { return number_cell(row.result.megabytes_received); }});
  }
}

// "Sent with headers: a 12.1 MB. Outside of steps: a 1.2 MB and b 4.1 MB."
std::string more_bytes(const Evidence& evidence) {
  std::vector<std::string> wire;
  std::vector<std::string> outside;
  for (std::size_t i = 0; i < evidence.runs.size(); ++i) {
    const RunResult& result = evidence.results[i];
    const auto text = [&](double value) {
      return evidence.labels[i] + " " + short_number(value) + " MB";
    };
    if (result.wire_megabytes_sent && *result.wire_megabytes_sent > 0) {
      wire.push_back(text(*result.wire_megabytes_sent));
    }
    if (result.megabytes_outside > 0) outside.push_back(text(result.megabytes_outside));
  }
  std::string all;
  if (!wire.empty()) all = "Sent with headers: " + listed(wire) + ". ";
  if (!outside.empty()) {
    all +=
        "Sent outside of steps (start, evaluations, checkpoints and the like): " + listed(outside) +
        ".";
  }
  return all;
}

}  // namespace

Table summary_of(const Evidence& evidence) {
  Columns columns;
  add_settings(evidence, columns);
  add_accuracies(evidence, columns);
  add_measures(evidence, columns);
  Table table;
  for (const SummaryColumn& column : columns) table.columns.push_back(column.head);
  for (std::size_t i = 0; i < evidence.runs.size(); ++i) {
    const Row row{i, evidence.labels[i], evidence.runs[i], evidence.results[i]};
    std::vector<std::string> cells;
    for (const SummaryColumn& column : columns) cells.push_back(column.cell(row));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::vector<std::string> remarks_of(const Evidence& evidence) {
  std::vector<std::string> remarks;
  std::size_t settings = 0;
  for (const Difference& difference : evidence.differences) {
    if (difference.name == "method" || difference.name == "workers") continue;
    if (settings++ < kMaxSettings) continue;
    std::vector<std::string> values;
    for (std::size_t i = 0; i < difference.values.size(); ++i) {
      if (difference.values[i].empty()) continue;  // it means nothing to that run
      values.push_back(evidence.labels[i] + " " + difference.values[i]);
    }
    remarks.push_back(difference.name + " differs too: " + join(values, ", ") + ".");
  }
  const bool partial =
      std::any_of(evidence.runs.begin(), evidence.runs.end(),
                  [](const RunRecords& run) { return run.dumps.fewest_samples > 0; });
  std::string text = "Accuracies and losses are of the " + evaluated_on(evidence.runs) + " set" +
                     (partial ? ", but for the dumped models' named below" : "") +
                     ". The loss is of the model that ";
  text += "counts: the server's last version, else the last evaluated.";
  if (has_dumps(evidence)) {
    text += " Workers' accuracy: mean of the last models they dumped.";
  }
  remarks.push_back(text +
                    " Time is until the end of training; speed and bytes are those of all workers "
                    "in training steps, bytes without the headers of messages.");
  for (std::size_t i = 0; i < evidence.runs.size(); ++i) {
    const std::int64_t fewest = evidence.runs[i].dumps.fewest_samples;
    if (fewest == 0) continue;
    remarks.push_back(evidence.labels[i] + ": what its dumped models scored is not of the whole " +
                      evidence.runs[i].evaluated_on() + " set, but of as few as " +
                      std::to_string(fewest) + " samples.");
  }
  std::vector<std::string> found;
  for (std::size_t i = 0; i < evidence.runs.size(); ++i) {
    const std::string value = evidence.runs[i].setting("consensus-stepsize");
    if (value != evidence.runs[i].asked_setting("consensus-stepsize")) {
      found.push_back(evidence.labels[i] + " " + value);
    }
  }
  if (!found.empty()) {
    remarks.push_back("The consensus-stepsize was found by each run: " + listed(found) + ".");
  }
  if (const std::string more = more_bytes(evidence); !more.empty()) remarks.push_back(more);
  for (std::size_t i = 0; i < evidence.runs.size(); ++i) {
    const int missing = evidence.results[i].missing_workers;
    if (missing == 0) continue;
    remarks.push_back(evidence.labels[i] + ": speed and bytes are those of " +
                      std::to_string(evidence.results[i].recorded_workers) + " of " +
                      evidence.runs[i].setting("workers") +
                      " workers; the others' records are not in its folder.");
  }
  return remarks;
}

}  // namespace cohort::report
