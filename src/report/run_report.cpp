#include "report/run_report.h"

#include <algorithm>
#include <cctype>

#include "core/error.h"
#include "core/text.h"
#include "report/conclusion.h"
#include "report/learning_curves.h"
#include "report/report_figures.h"

namespace cohort::report {
namespace {

using Runs = std::vector<RunRecords>;

// Whether `value` stands in `label` as it is, and not as a part of a longer number or word.
bool says(const std::string& label, const std::string& value) {
  const auto is_part = [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.';
  };
  for (std::size_t at = label.find(value); at != std::string::npos;
       at = label.find(value, at + 1)) {
    const std::size_t end = at + value.size();
    if ((at == 0 || !is_part(label[at - 1])) && (end == label.size() || !is_part(label[end]))) {
      return true;
    }
  }
  return false;
}

// The label, and the settings in which the run differs from the others and which it does not name.
std::vector<std::string> titles_of(const Evidence& evidence, bool labelled) {
  std::vector<std::string> titles = evidence.labels;
  if (labelled) return titles;
  for (std::size_t i = 0; i < titles.size(); ++i) {
    std::vector<std::string> settings;
    for (const Difference& difference : evidence.differences) {
      const std::string& value = difference.values[i];
      if (settings.size() < kMaxSettings && !value.empty() && !says(evidence.labels[i], value)) {
        settings.push_back(difference.name + " " + value);
      }
    }
    if (!settings.empty()) titles[i] += ": " + join(settings, ", ");
  }
  return titles;
}

// What to name instead of one process's folder.
std::string whole_job_text(const Runs& runs) {
  if (runs.size() != 1 || runs.front().part_of.empty()) return "";
  const std::string job = runs.front().part_of.string();
  return "; it is one process's part of the job " + job + ": name " + job;
}

void check(const Runs& runs, const ReportOptions& options) {
  if (runs.empty()) throw ConfigError("name at least one run directory");
  if (!options.labels.empty() && options.labels.size() != runs.size()) {
    throw ConfigError("give a --label for each run or for none: there are " +
                      std::to_string(runs.size()) + " runs and " +
                      std::to_string(options.labels.size()) + " labels");
  }
  if (std::all_of(runs.begin(), runs.end(), [](const RunRecords& run) {
        return run.steps.empty() && run.evaluations.empty() && run.dumps.empty();
      })) {
    throw ConfigError(
        (runs.size() == 1 ? runs.front().folder.string() + " has" : std::string("the runs have")) +
        " no records yet: there is nothing to report" + whole_job_text(runs));
  }
}

std::string usual_title(const Runs& runs) {
  const std::string model = said_by(runs, [](const auto& run) { return run.setting("model"); });
  const std::string data = said_by(runs, [](const auto& run) { return run.setting("data"); });
  const bool one = model.find(';') == std::string::npos && data.find(';') == std::string::npos;
  const std::string count = runs.size() == 1 ? "one run" : std::to_string(runs.size()) + " runs";
  if (model.empty() || data.empty() || !one) return "Report of " + count;
  return model + " on " + data + ": " + count;
}

}  // namespace

Report make_report(const Runs& runs, const ReportOptions& options) {
  check(runs, options);
  Report report;
  report.title = options.title.value_or(usual_title(runs));
  report.created = options.created;
  const std::vector<std::string> labels =
      options.labels.empty() ? usual_labels(runs) : options.labels;
  std::vector<RunResult> results;
  for (const RunRecords& run : runs) {
    report.notes.insert(report.notes.end(), run.notes.begin(), run.notes.end());
    results.push_back(result_of(run));
  }
  const std::vector<Difference> differences = differing_settings(runs);
  const Evidence evidence{runs, labels, results, differences};
  report.facts = facts_of(runs);
  report.commands = commands_of(runs, labels);
  report.summary = summary_of(evidence);
  report.remarks = remarks_of(evidence);
  report.runs = figures_of_runs(runs, titles_of(evidence, !options.labels.empty()), report.notes);
  report.comparisons = comparison_figures(runs, labels);
  report.conclusion = conclusions(evidence);
  return report;
}

}  // namespace cohort::report
