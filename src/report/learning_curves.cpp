#include "report/learning_curves.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "core/error.h"
#include "core/text.h"
#include "report/curve_series.h"
#include "report/measures.h"

namespace cohort::report {
namespace {

namespace fs = std::filesystem;

// What a run learns from. Settings that are not here (workers, engines, threads, where data lies)
// go with the method or with the machine.
constexpr const char* kTask[] = {
    "model",      "data",       "seed",       "batch",           "train-size",
    "test-size",  "image-size", "augment",    "normalize",       "optimizer",
    "lr",         "momentum",   "nesterov",   "schedule",        "weight-decay",
    "accumulate", "epochs",     "iterations", "dropout",         "depth",
    "widen",      "growth",     "partition",  "label-smoothing", "clip-norm"};

std::string folder_name(const fs::path& folder) {
  fs::path whole = fs::absolute(folder).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();  // written with a '/' at the end
  return whole.filename().string();
}

bool all_different(const std::vector<std::string>& texts) {
  return std::set<std::string>(texts.begin(), texts.end()).size() == texts.size();
}

bool same_setting(const std::vector<RunRecords>& runs, const std::string& name) {
  return std::all_of(runs.begin(), runs.end(), [&](const RunRecords& run) {
    return run.setting(name) == runs.front().setting(name);
  });
}

std::string default_title(const std::vector<RunRecords>& runs) {
  const std::string model = runs.front().setting("model");
  const std::string data = runs.front().setting("data");
  if (model.empty() || data.empty()) return "";
  return same_setting(runs, "model") && same_setting(runs, "data") ? model + " on " + data : "";
}

// Long times in a unit people think in.
void in_readable_time(std::vector<Panel>& panels) {
  double longest = 0;
  for (const Panel& panel : panels) {
    for (const Curve& curve : panel.curves) {
      if (!curve.points.empty()) longest = std::max(longest, curve.points.back().x);
      longest = std::max(longest, curve.held_until.value_or(0));
    }
  }
  const double unit = longest >= 3 * 3600 ? 3600 : longest >= 5 * 60 ? 60 : 1;
  for (Panel& panel : panels) {
    panel.x_title = unit == 3600 ? "hours" : unit == 60 ? "minutes" : "seconds";
    for (Curve& curve : panel.curves) {
      for (Point& point : curve.points) point.x /= unit;
      for (Point& point : curve.faint) point.x /= unit;
      if (curve.held_until) *curve.held_until /= unit;
    }
  }
}

std::size_t finite_values(const std::vector<Point>& points) {
  return static_cast<std::size_t>(std::count_if(
      points.begin(), points.end(), [](const Point& point) { return std::isfinite(point.y); }));
}

// Whether a run that lacks the measure needs a word about it: a server has no records of steps, and
// not every worker evaluates.
bool is_missed(const Series& series) { return series.owner.kind == Owner::Kind::kRun; }

// "Test loss", of whatever the runs were evaluated on.
std::string title_of(const Measure& measure, const std::vector<RunRecords>& runs) {
  constexpr std::string_view kTest = "Test";
  if (!measure.title.starts_with(kTest)) return measure.title;
  std::string split = evaluated_on(runs);
  split[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(split[0])));
  return split + measure.title.substr(kTest.size());
}

// Returns how many values there are to draw.
std::size_t add_panel(LearningCurves& result, const std::vector<Series>& all,
                      const Measure& measure, const std::string& title,
                      const CurveOptions& options) {
  Panel panel{.title = title, .x_title = find_course(options.x).title, .curves = {}};
  panel.y_limits = measure.limits;
  panel.y_scale = measure.scale;
  if (options.log_y && !measure.is_percentage()) panel.y_scale = Scale::kLogarithmic;
  panel.may_cut_beginning = measure.is_score() && panel.y_scale == Scale::kLinear;
  panel.from_zero = measure.is_amount();
  std::size_t drawn = 0;
  for (const Series& series : all) {
    Curve curve = make_curve(series, measure, options);
    const std::size_t finite = finite_values(curve.points);
    if (finite == 0 && is_missed(series)) {
      result.notes.push_back(name_of(series) + " has no " + measure.name + " yet");
    } else if (finite < curve.points.size()) {
      result.notes.push_back(name_of(series) + ": " + measure.name + " is not a number in " +
                             std::to_string(curve.points.size() - finite) + " of " +
                             std::to_string(curve.points.size()) + " records, left as gaps");
    }
    drawn += finite;
    panel.curves.push_back(std::move(curve));
  }
  if (drawn > 0) {
    result.figure.panels.push_back(std::move(panel));  // the notes tell of the others
  } else if (options.by == CurvesBy::kWorker) {
    result.notes.push_back("no worker has any " + measure.name + " yet");
  }
  return drawn;
}

[[noreturn]] void refuse_nothing_to_draw(const std::vector<RunRecords>& runs,
                                         const CurveOptions& options) {
  const bool no_records = std::all_of(runs.begin(), runs.end(), [](const RunRecords& run) {
    return run.steps.empty() && run.evaluations.empty() && run.dumps.empty();
  });
  const std::string who =
      runs.size() == 1 ? runs.front().folder.string() + " has" : std::string("the runs have");
  if (no_records) {
    throw ConfigError(who +
                      " no records yet: the first comes after --record-every steps of "
                      "training; try again then");
  }
  throw ConfigError(who + " no value of " + join(options.y, ", ") + "; known: " + measure_names());
}

}  // namespace

int usual_window(std::size_t records) {
  constexpr std::size_t kMax = 1000;  // a mean of that many is smooth enough, and cheap
  return static_cast<int>(std::min(records / 50, kMax)) / 2 * 2 + 1;
}

std::vector<Point> smoothed(const std::vector<Point>& points, int window) {
  std::vector<Point> result = points;
  const auto count = static_cast<std::ptrdiff_t>(points.size());
  for (std::ptrdiff_t at = 0; at < count; ++at) {
    if (!std::isfinite(points[static_cast<std::size_t>(at)].y)) continue;
    double sum = 0;
    int finite = 0;
    const std::ptrdiff_t end = std::min<std::ptrdiff_t>(count, at + window / 2 + 1);
    for (std::ptrdiff_t i = std::max<std::ptrdiff_t>(0, at - (window - 1) / 2); i < end; ++i) {
      const double value = points[static_cast<std::size_t>(i)].y;
      if (!std::isfinite(value)) continue;
      sum += value;
      ++finite;
    }
    result[static_cast<std::size_t>(at)].y = sum / finite;
  }
  return result;
}

std::vector<std::string> usual_labels(const std::vector<RunRecords>& runs) {
  std::vector<std::string> methods;
  std::vector<std::string> names;
  std::vector<std::string> paths;
  for (const RunRecords& run : runs) {
    methods.push_back(run.setting("method"));
    names.push_back(folder_name(run.folder));
    paths.push_back(run.folder.string());
  }
  const bool same_task = std::all_of(std::begin(kTask), std::end(kTask),
                                     [&](const char* name) { return same_setting(runs, name); });
  const bool known = std::find(methods.begin(), methods.end(), "") == methods.end();
  if (runs.size() > 1 && same_task && known && all_different(methods)) return methods;
  return all_different(names) ? names : paths;
}

LearningCurves learning_curves(const std::vector<RunRecords>& runs, const CurveOptions& options) {
  if (runs.empty()) throw ConfigError("name at least one run directory");
  if (options.y.empty()) throw ConfigError("name at least one measure; known: " + measure_names());
  if (!options.labels.empty() && options.labels.size() != runs.size()) {
    throw ConfigError("give a --label for each run or for none: there are " +
                      std::to_string(runs.size()) + " runs and " +
                      std::to_string(options.labels.size()) + " labels");
  }
  LearningCurves result;
  for (const RunRecords& run : runs) {
    result.notes.insert(result.notes.end(), run.notes.begin(), run.notes.end());
  }
  result.figure.title = options.title.value_or(default_title(runs));
  result.figure.columns = options.columns;
  const std::vector<Series> all = series_of(runs, options);
  for (const Series& series : all) {
    result.figure.labels.push_back(series.label);
    result.figure.styles.push_back(series.style);
  }
  std::size_t drawn = 0;
  for (const std::string& name : options.y) {
    const Measure& measure = find_measure(name);
    drawn += add_panel(result, all, measure, title_of(measure, runs), options);
  }
  if (drawn == 0) refuse_nothing_to_draw(runs, options);
  if (options.x == "seconds") in_readable_time(result.figure.panels);
  const Size usual = usual_size(result.figure);
  result.figure.size = {options.width.value_or(usual.width), options.height.value_or(usual.height)};
  return result;
}

CurveOptions dump_curve_options() {
  return {.y = {"dump-loss", "dump-top1"}, .x = "seconds", .by = CurvesBy::kWorker, .columns = 1};
}

LearningCurves dump_curves(const RunRecords& run, std::optional<std::string> title,
                           const std::string& x) {
  if (run.dumps.empty()) {
    throw ConfigError(run.folder.string() +
                      " has no scores of dumped models; `cohort eval` evaluates the dumps");
  }
  CurveOptions options = dump_curve_options();
  options.title = std::move(title);
  options.x = x;
  return learning_curves({run}, options);
}

}  // namespace cohort::report
