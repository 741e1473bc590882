#include "metrics/run_totals.h"

#include <utility>
#include <vector>

#include "metrics/over_ranks.h"

namespace cohort::metrics {
namespace {

StepRecord merged_values(const std::map<Rank, StepRecord>& by_rank) {
  std::vector<StepRecord> records;
  for (const auto& [rank, record] : by_rank) records.push_back(record);
  return merged(records);
}

}  // namespace

void RunTotals::add(const StepRecord& record) {
  const auto [found, is_new] = steps_.emplace(record.rank, record);
  if (is_new) return;
  const StepRecord before = std::exchange(found->second, record);
  StepRecord& sum = found->second;
  sum.samples += before.samples;
  sum.steps += before.steps;
  for (const auto member : {&StepRecord::data_seconds, &StepRecord::compute_seconds,
                            &StepRecord::exchange_seconds, &StepRecord::update_seconds}) {
    sum.*member += before.*member;
  }
  add_bytes(sum, before);
}

void RunTotals::add(const TrafficRecord& record) {
  const auto [found, is_new] = outside_.emplace(record.purpose, record);
  if (!is_new) add_bytes(found->second, record);
}

StepRecord RunTotals::steps() const { return merged_values(steps_); }

TrafficRecord RunTotals::outside_sum() const {
  TrafficRecord sum;
  for (const auto& [purpose, record] : outside_) add_bytes(sum, record);
  return sum;
}

void TotalsSink::record(const StepRecord& record) {
  const std::lock_guard lock(mutex_);
  totals_.add(record);
  newest_[record.rank] = record;
}

void TotalsSink::record(const TrafficRecord& record) {
  const std::lock_guard lock(mutex_);
  totals_.add(record);
}

RunTotals TotalsSink::totals() const {
  const std::lock_guard lock(mutex_);
  return totals_;
}

StepRecord TotalsSink::newest() const {
  const std::lock_guard lock(mutex_);
  return merged_values(newest_);
}

}  // namespace cohort::metrics
