// What the records of a run come to, over all workers and from the first record to the last.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "metrics/metrics_sink.h"

namespace cohort::metrics {

class RunTotals {
 public:
  void add(const StepRecord& record);
  void add(const TrafficRecord& record);

  // The workers whose records these are.
  int workers() const { return static_cast<int>(steps_.size()); }
  // As one record (over_ranks.h): samples and bytes are sums, durations means over the workers.
  // Losses, shares and what else cannot be added are those of the newest.
  StepRecord steps() const;
  // Outside of steps, by purpose.
  const std::map<std::string, TrafficRecord>& outside() const { return outside_; }
  TrafficRecord outside_sum() const;

 private:
  std::map<Rank, StepRecord> steps_;
  std::map<std::string, TrafficRecord> outside_;
};

// Adds up while a run goes on. All of it may be called from several threads.
class TotalsSink final : public MetricsSink {
 public:
  void record(const StepRecord& record) override;
  void record(const EvaluationRecord&) override {}
  void record(const EventRecord&) override {}
  void record(const TrafficRecord& record) override;
  void flush() override {}

  RunTotals totals() const;
  // The newest record of each worker, as one.
  StepRecord newest() const;

 private:
  mutable std::mutex mutex_;  // guards all below
  RunTotals totals_;
  std::map<Rank, StepRecord> newest_;
};

}  // namespace cohort::metrics
