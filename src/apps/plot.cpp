#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "apps/command.h"
#include "core/error.h"
#include "core/text.h"
#include "report/learning_curves.h"
#include "report/measures.h"
#include "report/picture.h"

namespace cohort::apps {
namespace {

struct PlotFlags {
  std::vector<std::string> runs;
  std::vector<std::string> outputs = {"curves.svg"};
  report::CurveOptions curves;
  std::vector<std::string> y;  // as asked for; empty: what suits the runs
  std::string x;               // likewise
  std::string by;              // likewise
  std::string title;
  double width = 0;
  double height = 0;
  double scale = 2;
};

// All that can be wrong with the flags, before any file is read.
void check_flags(const PlotFlags& flags) {
  if (!flags.x.empty()) report::find_course(flags.x);
  for (const std::string& name : flags.y) report::find_measure(name);
  const std::vector<std::string> ways = {"run", "worker"};
  if (!flags.by.empty() && std::find(ways.begin(), ways.end(), flags.by) == ways.end()) {
    throw ConfigError(unknown_name("--by", flags.by, ways));
  }
  for (const std::string& path : flags.outputs) report::check_picture_path(path);
}

// What was asked for; and for the rest, of one run whose dumped models have scores, these by
// worker.
report::CurveOptions options_for(const std::vector<report::RunRecords>& runs,
                                 const PlotFlags& flags) {
  report::CurveOptions options = flags.curves;
  const bool asks_for_dumps = std::all_of(flags.y.begin(), flags.y.end(), [](const auto& name) {
    return report::find_measure(name).is_of_dumps();
  });
  const bool of_dumps =
      runs.size() == 1 && !runs.front().dumps.empty() && asks_for_dumps && flags.by != "run";
  if (of_dumps) {
    const report::CurveOptions usual = report::dump_curve_options();
    options.y = usual.y;
    options.x = usual.x;
    options.by = usual.by;
    options.columns = usual.columns;
  }
  if (!flags.y.empty()) options.y = flags.y;
  if (!flags.x.empty()) options.x = flags.x;
  if (!flags.by.empty())
    options.by = flags.by == "worker" ? report::CurvesBy::kWorker : report::CurvesBy::kRun;
  return options;
}

void run_plot(const PlotFlags& flags) {
  check_flags(flags);
  std::vector<report::RunRecords> runs;
  for (const auto& folder : report::jobs_among({flags.runs.begin(), flags.runs.end()})) {
    runs.push_back(report::read_run(folder));
  }
  const report::CurveOptions options = options_for(runs, flags);
  const report::LearningCurves curves = report::learning_curves(runs, options);
  for (const std::string& note : curves.notes) fmt::print(stderr, "note: {}\n", note);
  for (const std::string& path : flags.outputs) {
    report::write_picture(curves.figure, path, flags.scale);
    fmt::print("{}: {} of {}\n", path, join(options.y, ", "),
               runs.size() == 1 ? flags.runs.front() : fmt::format("{} runs", runs.size()));
  }
}

}  // namespace

void add_plot(CLI::App& program, Invocation&) {
  CLI::App* command =
      program.add_subcommand("plot", "Draw the curves of one or more runs (SVG, PNG)");
  auto flags = std::make_shared<PlotFlags>();
  report::CurveOptions& curves = flags->curves;
  command->add_option("runs", flags->runs, "run directories, also of runs under way")->required();
  // Each takes one value: what follows may be a run.
  command
      ->add_option("-o,--out", flags->outputs,
                   "file to write, .svg or .png; may be given several times")
      ->allow_extra_args(false)
      ->capture_default_str();
  command
      ->add_option("--y", flags->y,
                   "what to draw, a panel each, separated by commas [train-loss,test-top1; of one "
                   "run with evaluated dumps dump-loss,dump-top1]: " +
                       report::measure_names())
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--x", flags->x,
                      "against what [epoch; of dumps seconds]: " + report::course_names());
  command->add_option("--by", flags->by,
                      "one curve for each run, or for each worker and the server [run; of one "
                      "run's dumps worker]: run, worker");
  command
      ->add_option("--label", curves.labels,
                   "name of a run in the legend, once for each run in order [the folder, or the "
                   "method where nothing else differs]")
      ->allow_extra_args(false);
  CLI::Option* title = command->add_option("--title", flags->title,
                                           "above it all; \"\" for none [model and data set]");
  CLI::Option* width = command
                           ->add_option("--width", flags->width,
                                        "of the picture, in units of "
                                        "1/96 inch [enough for the panels]")
                           ->check(CLI::Range(report::kLeastSide, 10000.0));
  CLI::Option* height = command->add_option("--height", flags->height, "likewise")
                            ->check(CLI::Range(report::kLeastSide, 10000.0));
  command->add_option("--scale", flags->scale, "pixels of a PNG for each unit of its width")
      ->check(CLI::Range(0.25, 8.0))
      ->capture_default_str();
  command
      ->add_option("--smooth", curves.smooth,
                   "draw the mean of so many records of training around each, and the records "
                   "faintly behind; 1 for none [a fiftieth of them]")
      ->check(CLI::Range(1, 10000));
  command->add_flag("--log-y", curves.log_y, "logarithmic vertical axes, except for percentages");
  command->callback([flags, title, width, height] {
    if (title->count() > 0) flags->curves.title = flags->title;
    if (width->count() > 0) flags->curves.width = flags->width;
    if (height->count() > 0) flags->curves.height = flags->height;
    run_plot(*flags);
  });
}

}  // namespace cohort::apps
