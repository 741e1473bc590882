#include "metrics/over_ranks.h"

#include <algorithm>
#include <set>

namespace cohort::metrics {
namespace {

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

}  // namespace

double training_seconds(const StepRecord& record) {
  return record.data_seconds + record.compute_seconds + record.exchange_seconds +
         record.update_seconds;
}

double samples_per_second(const StepRecord& record) {
  const double seconds = training_seconds(record);
  return seconds > 0 ? static_cast<double>(record.samples) / seconds : 0;
}

StepRecord merged(const std::vector<StepRecord>& group) {
  if (group.empty()) return {};
  StepRecord result = group.front();
  merge_scores(result, group);
  for (const auto member : {&StepRecord::data_seconds, &StepRecord::compute_seconds,
                            &StepRecord::exchange_seconds, &StepRecord::update_seconds}) {
    SampleMean mean;
    for (const StepRecord& record : group) mean.add(record.*member, 1);
    result.*member = mean.value();
  }
  result.bytes_sent = result.bytes_received = 0;
  result.wire_bytes_sent = result.wire_bytes_received = std::nullopt;
  for (const StepRecord& record : group) add_bytes(result, record);
  result.staleness = mean_of(group, &StepRecord::staleness);
  result.consensus_distance = mean_of(group, &StepRecord::consensus_distance);
  return result;
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

}  // namespace cohort::metrics
