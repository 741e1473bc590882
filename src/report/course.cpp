#include "report/course.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/text.h"
#include "report/json_fields.h"

namespace cohort::report {
namespace {

// At `x` on the line through the points, from the origin to the first and level after the last.
double interpolated(const std::vector<Point>& points, double x) {
  const auto after =
      std::find_if(points.begin(), points.end(), [x](const Point& point) { return point.x >= x; });
  if (after == points.end()) return points.back().y;
  const Point before = after == points.begin() ? Point{} : *(after - 1);
  if (after->x <= before.x) return after->y;
  return before.y + (after->y - before.y) * (x - before.x) / (after->x - before.x);
}

std::vector<Point> bytes_over_time(const RunRecords& run) {
  std::vector<Point> points;
  for (const metrics::StepRecord& record : run.steps) {
    points.push_back({record.time_seconds, static_cast<double>(record.bytes_sent) / 1e6});
  }
  std::stable_sort(points.begin(), points.end(),
                   [](const Point& a, const Point& b) { return a.x < b.x; });
  double sum = 0;
  for (Point& point : points) point.y = sum += point.y;
  return points;
}

}  // namespace

const std::vector<Course>& courses() {
  static const std::vector<Course> table = {
      {"epoch", "epoch", CourseKind::kEpoch},
      {"step", "step", CourseKind::kStep},
      {"seconds", "seconds", CourseKind::kSeconds},
      {"megabytes", "sent by all workers (MB)", CourseKind::kMegabytes},
  };
  return table;
}

std::string course_names() {
  std::vector<std::string> names;
  for (const Course& course : courses()) names.push_back(course.name);
  return join(names, ", ");
}

const Course& find_course(std::string_view name) {
  std::vector<std::string> names;
  for (const Course& course : courses()) {
    if (course.name == name) return course;
    names.push_back(course.name);
  }
  throw ConfigError(unknown_name("horizontal axis", name, names));
}

Positions::Positions(const RunRecords& run, const Course& course)
    : kind_(course.kind), steps_per_epoch_(run.steps_per_epoch().value_or(kMissing)) {
  if (kind_ == CourseKind::kMegabytes) bytes_ = bytes_over_time(run);
  for (const auto& [rank, dumps] : run.dumps.workers) {
    for (const ScoredDump& dump : dumps) {
      const double epoch = epoch_of(dump);
      if (std::isfinite(epoch)) worker_epoch_[rank].push_back({dump.score.seconds, epoch});
    }
  }
  if (worker_epoch_.empty()) {
    for (const metrics::StepRecord& record : run.steps) {
      worker_epoch_[record.rank].push_back({record.time_seconds, record.epoch});
    }
  }
  const auto extend = [&](const auto& records) {
    for (const auto& record : records) {
      const double place = of(record);
      if (std::isfinite(place)) end_ = std::max(end_, place);
    }
  };
  extend(run.steps);
  extend(run.dumps.server);
  for (const auto& [rank, dumps] : run.dumps.workers) extend(dumps);
}

template <class Record>
double Positions::of_record(const Record& record) const {
  switch (kind_) {
    case CourseKind::kEpoch:
      return record.epoch;
    case CourseKind::kStep:
      return static_cast<double>(record.step);
    case CourseKind::kSeconds:
      return record.time_seconds;
    case CourseKind::kMegabytes:
      return bytes_until(record.time_seconds);
  }
  return kMissing;
}

double Positions::of(const metrics::StepRecord& record) const { return of_record(record); }

double Positions::of(const metrics::EvaluationRecord& record) const { return of_record(record); }

double Positions::of(const ScoredDump& dump) const {
  const double seconds = dump.score.seconds;
  switch (kind_) {
    case CourseKind::kEpoch:
      return dump.name.of_server ? epoch_at(seconds) : epoch_of(dump);
    case CourseKind::kStep:
      return steps_per_epoch_ * (dump.name.of_server ? epoch_at(seconds) : epoch_of(dump));
    case CourseKind::kSeconds:
      return seconds;
    case CourseKind::kMegabytes:
      return bytes_until(seconds);
  }
  return kMissing;
}

double Positions::bytes_until(double seconds) const {
  const auto after =
      std::upper_bound(bytes_.begin(), bytes_.end(), seconds,
                       [](double time, const Point& point) { return time < point.x; });
  return after == bytes_.begin() ? 0 : (after - 1)->y;
}

double Positions::epoch_at(double seconds) const {
  if (worker_epoch_.empty()) return kMissing;
  double sum = 0;
  for (const auto& [rank, points] : worker_epoch_) sum += interpolated(points, seconds);
  return sum / static_cast<double>(worker_epoch_.size());
}

double Positions::epoch_of(const ScoredDump& dump) const {
  return static_cast<double>(dump.name.epoch) +
         static_cast<double>(dump.name.batch) / steps_per_epoch_;
}

}  // namespace cohort::report
