// The workers' records as those of all workers: the one definition of a job's speed and bytes, for
// reports, summaries and the line that is shown while it trains.
#pragma once

#include <vector>

#include "metrics/records.h"

namespace cohort::metrics {

// Records of different ranks about the same stretch of training as one: means of losses and shares
// weighted by samples, sums of samples and bytes, means of durations, the furthest step, epoch and
// time. Of none: an empty record.
StepRecord merged(const std::vector<StepRecord>& group);

// All records, those about the same stretch as one, in the order of steps. Ranks that keep in step
// make one record for each of theirs; of those that do not each weighs the same.
std::vector<StepRecord> over_ranks(std::vector<StepRecord> records);
std::vector<EvaluationRecord> over_ranks(std::vector<EvaluationRecord> records);

// In the steps covered, without evaluations and checkpoints.
double training_seconds(const StepRecord& record);
// Of a merged record: by all workers together. 0: unknown.
double samples_per_second(const StepRecord& record);

// Adds the bytes of one record, of steps or of traffic outside of them, to another.
template <class Sum, class Part>
void add_bytes(Sum& sum, const Part& part) {
  sum.bytes_sent += part.bytes_sent;
  sum.bytes_received += part.bytes_received;
  if (part.wire_bytes_sent) {
    sum.wire_bytes_sent = sum.wire_bytes_sent.value_or(0) + *part.wire_bytes_sent;
  }
  if (part.wire_bytes_received) {
    sum.wire_bytes_received = sum.wire_bytes_received.value_or(0) + *part.wire_bytes_received;
  }
}

}  // namespace cohort::metrics
