// Keeps nothing: for workers whose measurements another one writes.
#pragma once

#include "metrics/metrics_sink.h"

namespace cohort::metrics {

class DiscardSink final : public MetricsSink {
 public:
  void record(const StepRecord&) override {}
  void record(const EvaluationRecord&) override {}
  void record(const EventRecord&) override {}
  void record(const TrafficRecord&) override {}
  void flush() override {}
};

}  // namespace cohort::metrics
