// What a run tells about itself: the schema of metrics.jsonl.
//
// These structures are the only contract between the engine and the reports. Fields are added,
// never renamed or given another meaning; a reader takes a missing field as its default here.
// Times are monotonic seconds since the run's start, durations are seconds, fractions are 0 to 1.
// A value that is not a number (a diverged loss) is kept as NaN here and is null in a file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "core/types.h"

namespace cohort::metrics {

// What one rank did in the `steps` steps that end with `step`.
struct StepRecord {
  double time_seconds = 0;       // when the record was made
  Rank rank = 0;                 // who made it
  Step step = 0;                 // steps taken so far, counting the last one covered
  double epoch = 0;              // passes over the training set so far, with a fraction
  double loss = 0;               // mean over the samples covered
  double top1 = 0;               // fraction of the samples covered whose best guess was right
  double top5 = 0;               // the same for the best five guesses
  double lr = 0;                 // learning rate of the last step covered
  std::int64_t samples = 0;      // samples this rank trained on in the steps covered
  double data_seconds = 0;       // waiting for batches
  double compute_seconds = 0;    // forward and backward
  double exchange_seconds = 0;   // waiting for other ranks, beyond what overlapped with compute
  double update_seconds = 0;     // optimizer
  std::int64_t steps = 0;        // steps covered; the four durations are their sums
  std::uint64_t bytes_sent = 0;  // payload (core/traffic.h) this rank sent in the steps covered
  std::uint64_t bytes_received = 0;
  std::optional<std::uint64_t> wire_bytes_sent = {};  // what its connections carried for that
  std::optional<std::uint64_t> wire_bytes_received = {};
  std::optional<double> late_seconds = {};  // by which others had to wait for this rank's gradients
  std::optional<double> late_data_seconds = {};  // of these, because its batch was not there
  std::optional<double> staleness = {};          // mean age in steps of the parameters trained on
  std::optional<std::int64_t> updates = {};      // made to a model that others change too
  std::optional<double> consensus_distance =
      {};  // L2 distance of the parameters to the group's mean

  friend bool operator==(const StepRecord&, const StepRecord&) = default;
};

// What a model scored on a whole split of the data.
struct EvaluationRecord {
  double time_seconds = 0;   // when the evaluation ended
  Rank rank = 0;             // whose model it was
  Step step = 0;             // steps the model had taken
  double epoch = 0;          // passes over the training set it had made
  std::string split = {};    // "train", "validation", "test"; "worker": test, a worker's own model
  double loss = 0;           // mean over the split
  double top1 = 0;           // fraction
  double top5 = 0;           // fraction
  std::int64_t samples = 0;  // samples evaluated
  double seconds = 0;        // how long it took
  std::optional<double> consensus_distance =
      {};  // of an average of models: the root mean squared L2 distance of their parameters to it

  friend bool operator==(const EvaluationRecord&, const EvaluationRecord&) = default;
};

// Something that happened once: a checkpoint, a resume, a lost peer.
struct EventRecord {
  double time_seconds = 0;  // when it happened
  Rank rank = 0;            // to whom
  Step step = 0;            // after how many steps
  std::string event = {};   // one word, stable: "start", "checkpoint", "resume", "finish", ...
  std::string detail = {};  // for people

  friend bool operator==(const EventRecord&, const EventRecord&) = default;
};

// What one rank sent and received outside of steps, since the record of this kind before.
struct TrafficRecord {
  double time_seconds = 0;       // when the record was made
  Rank rank = 0;                 // who sent and received
  Step step = 0;                 // after how many steps
  std::string purpose = {};      // "start", "evaluation", "checkpoint", "coordination", "finish"
  std::uint64_t bytes_sent = 0;  // as in StepRecord
  std::uint64_t bytes_received = 0;
  std::optional<std::uint64_t> wire_bytes_sent = {};
  std::optional<std::uint64_t> wire_bytes_received = {};

  friend bool operator==(const TrafficRecord&, const TrafficRecord&) = default;
};

using AnyRecord = std::variant<StepRecord, EvaluationRecord, EventRecord, TrafficRecord>;

}  // namespace cohort::metrics
