// Records in which every field differs from its default.
#pragma once

#include "metrics/records.h"

namespace cohort::metrics {

inline StepRecord sample_step(Rank rank = 3, Step step = 1200) {
  return {.time_seconds = 12.125,
          .rank = rank,
          .step = step,
          .epoch = 2.1,
          .loss = 0.1 + 0.2,
          .top1 = 0.75,
          .top5 = 0.99,
          .lr = 1e-5,
          .samples = 12800,
          .data_seconds = 0.5,
          .compute_seconds = 4.25,
          .exchange_seconds = 0.125,
          .update_seconds = 0.0625,
          .steps = 100,
          .bytes_sent = 18446744073709551615U,
          .bytes_received = 7,
          .wire_bytes_sent = 18446744073709551615U,
          .wire_bytes_received = 71,
          .staleness = 1.5,
          .updates = 2400,
          .consensus_distance = 1e-9};
}

inline EvaluationRecord sample_evaluation(Rank rank = 1) {
  return {.time_seconds = 60.5,
          .rank = rank,
          .step = 469,
          .epoch = 1,
          .split = "test",
          .loss = 0.25,
          .top1 = 0.915,
          .top5 = 0.9975,
          .samples = 10000,
          .seconds = 2.5};
}

inline EventRecord sample_event(Rank rank = 2) {
  return {.time_seconds = 3.5,
          .rank = rank,
          .step = 40,
          .event = "checkpoint",
          .detail = "wrote \"latest\"\n\tat C:\\runs, \xc3\xa9t\xc3\xa9"};
}

inline TrafficRecord sample_traffic(Rank rank = 2) {
  return {.time_seconds = 3.5,
          .rank = rank,
          .step = 40,
          .purpose = "evaluation",
          .bytes_sent = 12,
          .bytes_received = 13,
          .wire_bytes_sent = 76,
          .wire_bytes_received = 77};
}

}  // namespace cohort::metrics
