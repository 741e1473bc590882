// Keeps records in memory, in the order they came.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "metrics/metrics_sink.h"

namespace cohort::metrics {

class MemorySink final : public MetricsSink {
 public:
  void record(const StepRecord& record) override { keep(record); }
  void record(const EvaluationRecord& record) override { keep(record); }
  void record(const EventRecord& record) override { keep(record); }
  void record(const TrafficRecord& record) override { keep(record); }
  void flush() override {}

  // A copy of everything so far.
  std::vector<AnyRecord> records() const {
    const std::lock_guard lock(mutex_);
    return records_;
  }

  // The records of one kind: all<StepRecord>().
  template <class Record>
  std::vector<Record> all() const {
    const std::lock_guard lock(mutex_);
    std::vector<Record> chosen;
    for (const AnyRecord& any : records_) {
      if (const auto* record = std::get_if<Record>(&any)) chosen.push_back(*record);
    }
    return chosen;
  }

 private:
  void keep(AnyRecord record) {
    const std::lock_guard lock(mutex_);
    records_.push_back(std::move(record));
  }

  mutable std::mutex mutex_;  // guards records_
  std::vector<AnyRecord> records_;
};

}  // namespace cohort::metrics
