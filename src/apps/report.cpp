#include <spdlog/fmt/chrono.h>
#include <spdlog/fmt/fmt.h>

#include <ctime>

#include "apps/command.h"
#include "report/report_file.h"
#include "report/run_report.h"

namespace cohort {
namespace {

struct ReportFlags {
  std::vector<std::string> runs;
  std::vector<std::string> outputs = {"report.pdf"};
  ReportOptions options;
  std::string title;
};

void run_report(const ReportFlags& flags) {
  for (const std::string& path : flags.outputs) check_report_path(path);
  std::vector<RunRecords> runs;
  for (const std::filesystem::path& folder : expanded_runs(flags.runs)) {
    runs.push_back(read_run(folder));
  }
  ReportOptions options = flags.options;
  options.created = fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::time(nullptr)));
  const Report report = make_report(runs, options);
  for (const std::string& note : report.notes) fmt::print(stderr, "note: {}\n", note);
  for (const std::string& path : flags.outputs) {
    write_report(report, path);
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

}  // namespace cohort
