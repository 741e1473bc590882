// Writes one JSON object a line, and reads it back.
//
//   {"type":"step","time_seconds":1.5,"rank":0,...}
//   {"type":"evaluation",...}
//   {"type":"event",...}
//   {"type":"traffic",...}
//
// Keys are the field names of records.h, in that order. Doubles are written with the fewest digits
// that read back to the same value; NaN and infinities, which JSON lacks, as null; absent optional
// fields are left out.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "metrics/metrics_sink.h"

namespace cohort::metrics {

class JsonLinesSink final : public MetricsSink {
 public:
  // Takes one whole line, its '\n' included. Never called by two threads at once. What it throws
  // comes out of record().
  using LineWriter = std::function<void(std::string_view line)>;
  // Makes the lines taken so far durable.
  using Flush = std::function<void()>;

  explicit JsonLinesSink(LineWriter write, Flush flush = {});

  void record(const StepRecord& record) override;
  void record(const EvaluationRecord& record) override;
  void record(const EventRecord& record) override;
  void record(const TrafficRecord& record) override;
  void flush() override;

 private:
  template <class Record>
  void write_line(const Record& record);

  std::mutex mutex_;  // guards line_ and the calls of write_ and flush_
  std::string line_;  // kept so that a record allocates nothing
  LineWriter write_;
  Flush flush_;
};

// The record on one line, or nothing when the line is torn, is not one of ours, or holds a value of
// the wrong type. Unknown fields are ignored, missing ones keep their defaults, null is NaN.
std::optional<AnyRecord> parse_record(std::string_view line);

}  // namespace cohort::metrics
