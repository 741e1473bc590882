#include "report/curve_series.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/text.h"

namespace cohort::report {
namespace {

std::set<Rank> workers_of(const RunRecords& run) {
  std::set<Rank> workers;
  for (const metrics::StepRecord& record : run.steps) workers.insert(record.rank);
  for (const metrics::EvaluationRecord& record : run.evaluations) workers.insert(record.rank);
  for (const auto& [rank, dumps] : run.dumps.workers) workers.insert(rank);
  return workers;
}

// "server (lowest loss 0.0405, best accuracy 98.7%)", as far as these are drawn.
std::string server_label(const RunRecords& run, const CurveOptions& options) {
  double loss = std::numeric_limits<double>::infinity();
  double accuracy = 0;
  for (const ScoredDump& dump : run.dumps.server) {
    if (dump.score.loss < loss) loss = dump.score.loss;
    accuracy = std::max(accuracy, dump.score.accuracy);
  }
  std::vector<std::string> best;
  for (const std::string& name : options.y) {
    if (name == "dump-loss" && std::isfinite(loss)) {
      best.push_back("lowest loss " + short_number(loss));
    } else if (name == "dump-top1") {
      best.push_back("best accuracy " + short_number(100 * accuracy) + "%");
    }
  }
  return best.empty() ? "server" : "server (" + join(best, ", ") + ")";
}

}  // namespace

std::vector<Series> series_of(const std::vector<RunRecords>& runs, const CurveOptions& options) {
  const std::vector<std::string> labels =
      options.labels.empty() ? usual_labels(runs) : options.labels;
  const bool of_dumps =
      std::any_of(options.y.begin(), options.y.end(),
                  [](const std::string& name) { return find_measure(name).is_of_dumps(); });
  std::vector<Series> result;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (options.by == CurvesBy::kRun) {
      result.push_back({&runs[i], {}, labels[i], curve_style(i)});
      continue;
    }
    const std::string prefix = runs.size() > 1 || !options.labels.empty() ? labels[i] + ", " : "";
    for (const Rank worker : workers_of(runs[i])) {
      const std::size_t number = result.size();
      result.push_back({&runs[i],
                        {Owner::Kind::kWorker, worker},
                        prefix + "worker " + std::to_string(worker),
                        worker_style(number)});
    }
    if (of_dumps && !runs[i].dumps.server.empty()) {
      result.push_back({&runs[i],
                        {Owner::Kind::kServer, 0},
                        prefix + server_label(runs[i], options),
                        server_style()});
    }
  }
  return result;
}

Curve make_curve(const Series& series, const Measure& measure, const CurveOptions& options) {
  const Course& course = find_course(options.x);
  Curve curve{curve_of(*series.run, measure, course, series.owner), {}};
  if (is_of_server(*series.run, measure, series.owner)) {
    curve.held_until = Positions(*series.run, course).end();
  }
  const int window = options.smooth > 0 ? options.smooth : usual_window(curve.points.size());
  if (window > 1 && measure.kind == MeasureKind::kNoisy) {
    curve.faint = std::move(curve.points);
    curve.points = smoothed(curve.faint, window);
  }
  return curve;
}

std::string name_of(const Series& series) {
  std::string folder = series.run->folder.string();
  if (series.owner.kind == Owner::Kind::kRun) return folder;
  return folder + (series.owner.kind == Owner::Kind::kServer
                       ? ", server"
                       : ", worker " + std::to_string(series.owner.worker));
}

}  // namespace cohort::report
