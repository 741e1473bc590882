// Hands every record to several sinks, in the order given. Does not own them; they outlive it.
#pragma once

#include <utility>
#include <vector>

#include "metrics/metrics_sink.h"

namespace cohort::metrics {

class TeeSink final : public MetricsSink {
 public:
  explicit TeeSink(std::vector<MetricsSink*> sinks) : sinks_(std::move(sinks)) {}

  void record(const StepRecord& record) override { pass_on(record); }
  void record(const EvaluationRecord& record) override { pass_on(record); }
  void record(const EventRecord& record) override { pass_on(record); }
  void record(const TrafficRecord& record) override { pass_on(record); }
  void flush() override {
    for (MetricsSink* sink : sinks_) sink->flush();
  }

 private:
  template <class Record>
  void pass_on(const Record& record) {
    for (MetricsSink* sink : sinks_) sink->record(record);
  }

  std::vector<MetricsSink*> sinks_;
};

}  // namespace cohort::metrics
