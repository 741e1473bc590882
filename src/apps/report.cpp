#include <spdlog/fmt/chrono.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <ctime>

#include "apps/command.h"
#include "report/report_file.h"
#include "report/run_report.h"

namespace cohort::apps {
namespace {

struct ReportFlags {
  std::vector<std::string> runs;
  std::vector<std::string> outputs = {"report.pdf"};
  report::ReportOptions options;
  std::string title;
};

// The summary for the terminal, each column as wide as it must be.
void print_table(const report::Table& table) {
  std::vector<std::size_t> widths;
  for (const report::TableColumn& column : table.columns) widths.push_back(column.title.size());
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  const auto print_row = [&](const auto& text_of) {
    std::string line;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      line += table.columns[i].is_number ? fmt::format("{:>{}}", text_of(i), widths[i])
                                         : fmt::format("{:<{}}", text_of(i), widths[i]);
      line += "  ";
    }
    fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  };
  print_row([&](std::size_t i) { return table.columns[i].title; });
  for (const auto& row : table.rows) print_row([&](std::size_t i) { return row[i]; });
  fmt::print("\n");
}

void run_report(const ReportFlags& flags) {
  for (const std::string& path : flags.outputs) report::check_report_path(path);
  std::vector<report::RunRecords> runs;
  for (const std::filesystem::path& folder : report::expanded_runs(flags.runs)) {
    runs.push_back(report::read_run(folder));
  }
  report::ReportOptions options = flags.options;
  options.created = fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::time(nullptr)));
  const report::Report report = report::make_report(runs, options);
  for (const std::string& note : report.notes) fmt::print(stderr, "note: {}\n", note);
  print_table(report.summary);
  for (const std::string& path : flags.outputs) {
    report::write_report(report, path);
    fmt::print("{}: {}\n", path, runs.size() == 1 ? "1 run" : fmt::format("{} runs", runs.size()));
  }
}

}  // namespace

void add_report(CLI::App& program, Invocation&) {
  CLI::App* command = program.add_subcommand(
      "report", "Summarise one or more runs: table, curves and conclusion (PDF, HTML)");
  auto flags = std::make_shared<ReportFlags>();
  command
      ->add_option("runs", flags->runs,
                   "run directories, or folders of them, also of runs under way")
      ->required();
  // Each takes one value: what follows may be a run.
  command
      ->add_option("-o,--out", flags->outputs,
                   "file to write, .pdf or .html; may be given several times")
      ->allow_extra_args(false)
      ->capture_default_str();
  command
      ->add_option("--label", flags->options.labels,
                   "name of a run, once for each run in order [the folder, or the method where "
                   "nothing else differs]")
      ->allow_extra_args(false);
  CLI::Option* title = command->add_option("--title", flags->title,
                                           "of the report [model, data set and number of runs]");
  command->callback([flags, title] {
    if (title->count() > 0) flags->options.title = flags->title;
    run_report(*flags);
  });
}

}  // namespace cohort::apps
