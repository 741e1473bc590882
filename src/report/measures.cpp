#include "report/measures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/error.h"
#include "core/text.h"

namespace cohort {
namespace {

constexpr double kEndless = std::numeric_limits<double>::infinity();
constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
constexpr Interval kPercent = {0, 100};
constexpr Interval kAtLeastZero = {0, kEndless};

double total_seconds(const StepRecord& record) {
  return record.data_seconds + record.compute_seconds + record.exchange_seconds +
         record.update_seconds;
}

double ratio(double part, double whole) { return whole > 0 ? part / whole : kMissing; }

template <class Entry>
const Entry& find(const std::vector<Entry>& table, std::string_view kind, std::string_view name) {
  std::vector<std::string> names;
  for (const Entry& entry : table) {
    if (entry.name == name) return entry;
    names.push_back(entry.name);
  }
  throw ConfigError(unknown_name(kind, name, names));
}

// Splits records that were sorted by step into groups in which no rank occurs twice. Ranks that
// keep in step make one group for each of their records; those that do not still weigh the same.
template <class Record>
std::vector<std::vector<Record>> groups_of(std::vector<Record> records) {
  std::stable_sort(records.begin(), records.end(),
                   [](const Record& a, const Record& b) { return a.step < b.step; });
  std::vector<std::vector<Record>> groups;
  std::set<Rank> ranks;
  for (Record& record : records) {
    if (groups.empty() || ranks.contains(record.rank)) {
      groups.emplace_back();
      ranks.clear();
    }
    ranks.insert(record.rank);
    groups.back().push_back(std::move(record));
  }
  return groups;
}

// A mean that weighs each value by its samples. One value stays exactly what it is.
class SampleMean {
 public:
  void add(double value, std::int64_t samples) {
    const double weight = std::max<double>(1, static_cast<double>(samples));
    weight_ += weight;
    mean_ += (value - mean_) * weight / weight_;
  }
  double value() const { return mean_; }

 private:
  double weight_ = 0;
  double mean_ = 0;
};

// The mean of those records that have the value.
std::optional<double> mean_of(const std::vector<StepRecord>& group,
                              std::optional<double> StepRecord::*member) {
  SampleMean mean;
  bool found = false;
  for (const StepRecord& record : group) {
    if (!(record.*member)) continue;
    mean.add(*(record.*member), 1);
    found = true;
  }
  return found ? std::optional(mean.value()) : std::nullopt;
}

template <class Record>
void merge_scores(Record& merged, const std::vector<Record>& group) {
  for (const auto member : {&Record::loss, &Record::top1, &Record::top5}) {
    SampleMean mean;
    for (const Record& record : group) mean.add(record.*member, record.samples);
    merged.*member = mean.value();
  }
  merged.samples = 0;
  for (const Record& record : group) {
    merged.samples += record.samples;
    merged.step = std::max(merged.step, record.step);
    merged.epoch = std::max(merged.epoch, record.epoch);
    merged.time_seconds = std::max(merged.time_seconds, record.time_seconds);
  }
}

StepRecord merged(const std::vector<StepRecord>& group) {
  StepRecord result = group.front();
  merge_scores(result, group);
  for (const auto member : {&StepRecord::data_seconds, &StepRecord::compute_seconds,
                            &StepRecord::exchange_seconds, &StepRecord::update_seconds}) {
    SampleMean mean;
    for (const StepRecord& record : group) mean.add(record.*member, 1);
    result.*member = mean.value();
  }
  result.bytes_sent = result.bytes_received = 0;
  for (const StepRecord& record : group) {
    result.bytes_sent += record.bytes_sent;
    result.bytes_received += record.bytes_received;
  }
  result.staleness = mean_of(group, &StepRecord::staleness);
  result.consensus_distance = mean_of(group, &StepRecord::consensus_distance);
  return result;
}

}  // namespace

const std::vector<Measure>& measures() {
  using S = StepRecord;
  using E = EvaluationRecord;
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
       +[](const S& r) { return ratio(static_cast<double>(r.samples), total_seconds(r)); },
       K::kNoisy},
      {"exchange-share", "Time spent waiting for other workers (%)", kPercent,
       +[](const S& r) { return ratio(100 * r.exchange_seconds, total_seconds(r)); }, K::kNoisy},
      {"megabytes-sent", "Sent by all workers so far (MB)", kAtLeastZero,
       +[](const S& r) { return static_cast<double>(r.bytes_sent) / 1e6; }, K::kTotal},
      {"staleness", "Age of the parameters (steps)", kAtLeastZero,
       +[](const S& r) { return r.staleness.value_or(kMissing); }, K::kNoisy},
      {"consensus-distance", "Distance to the mean parameters", kAtLeastZero,
       +[](const S& r) { return r.consensus_distance.value_or(kMissing); }, K::kNoisy},
  };
  return table;
}

const std::vector<Course>& courses() {
  using S = StepRecord;
  using E = EvaluationRecord;
  static const std::vector<Course> table = {
      {"epoch", "epoch", +[](const S& r) { return r.epoch; }, +[](const E& r) { return r.epoch; }},
      {"step", "step", +[](const S& r) { return static_cast<double>(r.step); },
       +[](const E& r) { return static_cast<double>(r.step); }},
      {"seconds", "seconds", +[](const S& r) { return r.time_seconds; },
       +[](const E& r) { return r.time_seconds; }},
  };
  return table;
}

const Measure& find_measure(std::string_view name) { return find(measures(), "measure", name); }

const Course& find_course(std::string_view name) {
  return find(courses(), "horizontal axis", name);
}

std::string measure_names() {
  std::vector<std::string> names;
  for (const Measure& measure : measures()) names.push_back(measure.name);
  return join(names, ", ");
}

std::vector<StepRecord> over_ranks(std::vector<StepRecord> records) {
  std::vector<StepRecord> result;
  for (const auto& group : groups_of(std::move(records))) result.push_back(merged(group));
  return result;
}

std::vector<EvaluationRecord> over_ranks(std::vector<EvaluationRecord> records) {
  std::vector<EvaluationRecord> result;
  for (const auto& group : groups_of(std::move(records))) {
    result.push_back(group.front());
    merge_scores(result.back(), group);
  }
  return result;
}

std::vector<Point> curve_of(const RunRecords& run, const Measure& measure, const Course& course) {
  std::vector<Point> points;
  if (measure.value.index() == 1) {
    for (const EvaluationRecord& record : over_ranks(run.evaluations)) {
      points.push_back({course.of_evaluation(record), std::get<1>(measure.value)(record)});
    }
  } else {
    for (const StepRecord& record : over_ranks(run.steps)) {
      points.push_back({course.of_step(record), std::get<0>(measure.value)(record)});
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

}  // namespace cohort
