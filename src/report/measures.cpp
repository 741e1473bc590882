#include "report/measures.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "core/error.h"
#include "core/text.h"
#include "report/json_fields.h"

namespace cohort::report {
namespace {

constexpr double kEndless = std::numeric_limits<double>::infinity();
constexpr Interval kPercent = {0, 100};
constexpr Interval kAtLeastZero = {0, kEndless};

double ratio(double part, double whole) { return whole > 0 ? part / whole : kMissing; }

template <class Record>
std::vector<Record> records_of(const std::vector<Record>& all, Owner owner) {
  if (owner.kind == Owner::Kind::kRun) return all;
  std::vector<Record> own;
  if (owner.kind == Owner::Kind::kServer) return own;
  std::copy_if(all.begin(), all.end(), std::back_inserter(own),
               [&](const Record& record) { return record.rank == owner.worker; });
  return own;
}

std::vector<ScoredDump> dumps_of(const RunRecords& run, Owner owner) {
  const auto& workers = run.dumps.workers;
  if (owner.kind == Owner::Kind::kWorker) {
    const auto found = workers.find(owner.worker);
    return found == workers.end() ? std::vector<ScoredDump>{} : found->second;
  }
  if (owner.kind == Owner::Kind::kServer || !run.dumps.server.empty()) return run.dumps.server;
  return workers.empty() ? std::vector<ScoredDump>{} : workers.begin()->second;
}

}  // namespace

const std::vector<Measure>& measures() {
  using S = metrics::StepRecord;
  using E = metrics::EvaluationRecord;
  using K = MeasureKind;
  static const std::vector<Measure> table = {
      {"train-loss", "Training loss", kAtLeastZero, +[](const S& r) { return r.loss; }, K::kNoisy},
      {"train-top1", "Training accuracy (%)", kPercent, +[](const S& r) { return 100 * r.top1; },
       K::kNoisy},
      {"train-top5", "Training top-5 accuracy (%)", kPercent,
       +[](const S& r) { return 100 * r.top5; }, K::kNoisy},
      {"test-loss", "Test loss", kAtLeastZero, +[](const E& r) { return r.loss; }},
      {"test-top1", "Test accuracy (%)", kPercent, +[](const E& r) { return 100 * r.top1; }},
      {"test-top5", "Test top-5 accuracy (%)", kPercent, +[](const E& r) { return 100 * r.top5; }},
      {"lr", "Learning rate", kAtLeastZero, +[](const S& r) { return r.lr; }},
      {"samples-per-second", "Training speed (samples/s)", kAtLeastZero,
       +[](const S& r) {
         return metrics::training_seconds(r) > 0 ? metrics::samples_per_second(r) : kMissing;
       },
       K::kNoisy},
      {"exchange-share", "Time spent waiting for other workers (%)", kPercent,
       +[](const S& r) { return ratio(100 * r.exchange_seconds, metrics::training_seconds(r)); },
       K::kNoisy},
      {"megabytes-sent", "Sent by all workers so far (MB)", kAtLeastZero,
       +[](const S& r) { return static_cast<double>(r.bytes_sent) / 1e6; }, K::kTotal},
      {"wire-megabytes-sent", "Sent by all workers so far, with headers (MB)", kAtLeastZero,
       +[](const S& r) {
         return r.wire_bytes_sent ? static_cast<double>(*r.wire_bytes_sent) / 1e6 : kMissing;
       },
       K::kTotal},
      {"staleness", "Age of the parameters (steps)", kAtLeastZero,
       +[](const S& r) { return r.staleness.value_or(kMissing); }, K::kNoisy},
      {"consensus-distance", "Distance to the mean parameters", kAtLeastZero,
       +[](const S& r) { return r.consensus_distance.value_or(kMissing); }, K::kNoisy},
      {"dump-loss", "Test loss", kAtLeastZero, +[](const storage::DumpScore& r) { return r.loss; },
       K::kExact, Scale::kLogarithmic},
      {"dump-top1", "Test accuracy (%)", kPercent,
       +[](const storage::DumpScore& r) { return 100 * r.accuracy; }},
  };
  return table;
}

const Measure& find_measure(std::string_view name) {
  std::vector<std::string> names;
  for (const Measure& measure : measures()) {
    if (measure.name == name) return measure;
    names.push_back(measure.name);
  }
  throw ConfigError(unknown_name("measure", name, names));
}

std::string measure_names() {
  std::vector<std::string> names;
  for (const Measure& measure : measures()) names.push_back(measure.name);
  return join(names, ", ");
}

bool is_of_server(const RunRecords& run, const Measure& measure, Owner owner) {
  return measure.is_of_dumps() && !run.dumps.server.empty() && owner.kind != Owner::Kind::kWorker;
}

std::vector<Point> curve_of(const RunRecords& run, const Measure& measure, const Course& course,
                            Owner owner) {
  const Positions positions(run, course);
  std::vector<Point> points;
  if (const auto* of_dump = std::get_if<2>(&measure.value)) {
    for (const ScoredDump& dump : dumps_of(run, owner)) {
      points.push_back({positions.of(dump), (*of_dump)(dump.score)});
    }
  } else if (const auto* of_evaluation = std::get_if<1>(&measure.value)) {
    for (const metrics::EvaluationRecord& record :
         metrics::over_ranks(records_of(run.evaluations, owner))) {
      points.push_back({positions.of(record), (*of_evaluation)(record)});
    }
  } else {
    for (const metrics::StepRecord& record : metrics::over_ranks(records_of(run.steps, owner))) {
      points.push_back({positions.of(record), std::get<0>(measure.value)(record)});
    }
  }
  std::erase_if(points, [](const Point& point) { return !std::isfinite(point.x); });
  std::stable_sort(points.begin(), points.end(),
                   [](const Point& a, const Point& b) { return a.x < b.x; });
  if (measure.kind == MeasureKind::kTotal) {
    double sum = 0;
    for (Point& point : points) point.y = sum += point.y;
  }
  return points;
}

}  // namespace cohort::report
