// Where measurements go.
//
// The records are the schema (records.h): reports read what a file sink wrote and link nothing of
// the engine. All methods may be called from several threads, so that the ranks of one process can
// share a sink; the records of one thread keep their order. Recording is cheap enough for every
// step (microseconds) and does not wait for a disk; flush() does.
#pragma once

#include "metrics/records.h"

namespace cohort::metrics {

class MetricsSink {
 public:
  virtual ~MetricsSink() = default;

  virtual void record(const StepRecord& record) = 0;
  virtual void record(const EvaluationRecord& record) = 0;
  virtual void record(const EventRecord& record) = 0;
  virtual void record(const TrafficRecord& record) = 0;

  // Makes everything recorded so far as durable as the sink can.
  virtual void flush() = 0;
};

}  // namespace cohort::metrics
