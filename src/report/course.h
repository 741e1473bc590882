// How far a run had come: the horizontal axis of its curves.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "report/canvas.h"
#include "report/run_records.h"

namespace cohort::report {

enum class CourseKind {
  kEpoch,
  kStep,
  kSeconds,
  kMegabytes,  // sent by all workers so far
};

struct Course {
  std::string name;   // "epoch"
  std::string title;  // along the axis
  CourseKind kind = CourseKind::kEpoch;
};

const std::vector<Course>& courses();

// Throws ConfigError listing the known names.
const Course& find_course(std::string_view name);

// "epoch, step, ...", for help texts.
std::string course_names();

// Where the records of one run stand on a course. Not a number where the run does not say.
//
// A worker's dump stands at epoch e + b / (steps of an epoch). A server's has no epoch of its own:
// it stands where the workers were at its time, on average, between the dumps (or records) before
// and after it. Bytes are those of all records up to a time.
class Positions {
 public:
  Positions(const RunRecords& run, const Course& course);

  double of(const metrics::StepRecord& record) const;
  double of(const metrics::EvaluationRecord& record) const;
  double of(const ScoredDump& dump) const;

  // The furthest that any record of training or dump of the run stands.
  double end() const { return end_; }

 private:
  template <class Record>
  double of_record(const Record& record) const;
  double bytes_until(double seconds) const;
  double epoch_at(double seconds) const;
  double epoch_of(const ScoredDump& dump) const;

  CourseKind kind_;
  double steps_per_epoch_;                           // not a number: unknown
  std::vector<Point> bytes_;                         // time, megabytes so far
  std::map<Rank, std::vector<Point>> worker_epoch_;  // time, epoch
  double end_ = 0;
};

}  // namespace cohort::report
