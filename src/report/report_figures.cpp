#include "report/report_figures.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "report/learning_curves.h"
#include "report/measures.h"

namespace cohort::report {
namespace {

constexpr double kHalfWidth = 443;  // two beside one another fill the page at about 0.75
constexpr double kFullWidth = 909;
constexpr double kRunRow = 164;          // height of a run's panel
constexpr double kComparisonRow = 250;   // likewise
constexpr double kThirdOfPage = 405;     // in the units of a figure of half the width
constexpr std::size_t kMaxWorkers = 16;  // by worker; of more, their mean

Figure figure_of_run(const RunRecords& run, const std::string& title) {
  if (!run.dumps.empty()) return dump_curves(run, title).figure;
  CurveOptions options{.y = {"train-loss", "test-top1"}, .title = title, .columns = 1};
  std::size_t workers = 0;
  for (const metrics::StepRecord& record : run.steps) {
    workers = std::max(workers, static_cast<std::size_t>(record.rank) + 1);
  }
  if (workers > 1 && workers <= kMaxWorkers) options.by = CurvesBy::kWorker;
  Figure figure = learning_curves({run}, options).figure;
  if (options.by == CurvesBy::kRun) figure.labels = {"all workers"};
  if (workers <= 1) figure.labels = {"worker 0"};
  return figure;
}

void make_equal(std::vector<Figure>& figures) {
  double height = 0;
  const bool alone = figures.size() == 1;
  for (Figure& figure : figures) {
    figure.compact = true;
    figure.size =
        size_of_width(figure, alone ? kFullWidth : kHalfWidth, alone ? kComparisonRow : kRunRow);
    height = std::max(height, figure.size.height);
  }
  // A legend of some rows more does not cost a page its third row of figures.
  if (!alone && height > kThirdOfPage && height < 1.15 * kThirdOfPage) height = kThirdOfPage;
  for (Figure& figure : figures) figure.size.height = height;
}

bool has_values(const std::vector<RunRecords>& runs, const std::string& measure) {
  return std::any_of(runs.begin(), runs.end(), [&](const RunRecords& run) {
    const auto points = curve_of(run, find_measure(measure), find_course("step"));
    return std::any_of(points.begin(), points.end(),
                       [](const Point& point) { return std::isfinite(point.y) && point.y > 0; });
  });
}

struct Wanted {
  std::string y;
  std::string x;
};

// Panels of different courses under one legend; empty when no run has anything for any of them.
Figure figure_of(const std::vector<RunRecords>& runs, const std::vector<std::string>& labels,
                 const std::string& title, const std::vector<Wanted>& panels) {
  Figure figure;
  for (const Wanted& wanted : panels) {
    if (!has_values(runs, wanted.y) && !find_measure(wanted.y).is_of_dumps()) continue;
    try {
      Figure one =
          learning_curves(runs, {.y = {wanted.y}, .x = wanted.x, .title = title, .labels = labels})
              .figure;
      figure.labels = one.labels;
      figure.styles = one.styles;
      figure.panels.insert(figure.panels.end(), one.panels.begin(), one.panels.end());
    } catch (const ConfigError&) {  // no run has a place on that course
    }
  }
  figure.title = title;
  figure.columns = 2;
  figure.compact = true;
  figure.size = size_of_width(figure, kFullWidth, kComparisonRow);
  return figure;
}

}  // namespace

std::vector<Figure> figures_of_runs(const std::vector<RunRecords>& runs,
                                    const std::vector<std::string>& titles,
                                    std::vector<std::string>& notes) {
  std::vector<Figure> figures;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    try {
      figures.push_back(figure_of_run(runs[i], titles[i]));
    } catch (const ConfigError& error) {
      notes.push_back(error.what());
    }
  }
  make_equal(figures);
  return figures;
}

std::vector<Figure> comparison_figures(const std::vector<RunRecords>& runs,
                                       const std::vector<std::string>& labels) {
  const bool of_dumps = std::all_of(runs.begin(), runs.end(),
                                    [](const RunRecords& run) { return !run.dumps.empty(); });
  const bool of_servers = std::all_of(
      runs.begin(), runs.end(), [](const RunRecords& run) { return !run.dumps.server.empty(); });
  const std::string top1 = of_dumps ? "dump-top1" : "test-top1";
  const std::string loss = of_dumps ? "dump-loss" : "test-loss";
  const std::string whose = of_servers ? " of the servers' models" : "";
  std::vector<Figure> figures;
  const auto add = [&](Figure figure) {
    if (!figure.panels.empty()) figures.push_back(std::move(figure));
  };
  if (runs.size() > 1) {
    add(figure_of(runs, labels, "Accuracy" + whose, {{top1, "epoch"}, {top1, "seconds"}}));
    std::vector<Wanted> more = {{loss, "seconds"}};
    if (has_values(runs, "megabytes-sent")) more.push_back({top1, "megabytes"});
    add(figure_of(runs, labels, more.size() > 1 ? "Loss and traffic" : "Loss" + whose, more));
  }
  add(figure_of(runs, labels, "Speed and exchange",
                {{"samples-per-second", "seconds"},
                 {"exchange-share", "seconds"},
                 {"staleness", "epoch"},
                 {"consensus-distance", "epoch"}}));
  return figures;
}

}  // namespace cohort::report
