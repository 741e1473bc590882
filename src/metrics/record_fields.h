// The fields of each record with their names, once for the writer and the reader of the layer.
#pragma once

#include <concepts>
#include <type_traits>

#include "metrics/records.h"

namespace cohort::metrics::detail {

template <class Record, class Plain>
concept ConstOr = std::same_as<std::remove_const_t<Record>, Plain>;

// Calls visit(name, member) for each field in the order of records.h.
template <ConstOr<StepRecord> Record, class Visit>
void visit_fields(Record& record, Visit&& visit) {
  visit("time_seconds", record.time_seconds);
  visit("rank", record.rank);
  visit("step", record.step);
  visit("epoch", record.epoch);
  visit("loss", record.loss);
  visit("top1", record.top1);
  visit("top5", record.top5);
  visit("lr", record.lr);
  visit("samples", record.samples);
  visit("data_seconds", record.data_seconds);
  visit("compute_seconds", record.compute_seconds);
  visit("exchange_seconds", record.exchange_seconds);
  visit("update_seconds", record.update_seconds);
  visit("steps", record.steps);
  visit("bytes_sent", record.bytes_sent);
  visit("bytes_received", record.bytes_received);
  visit("wire_bytes_sent", record.wire_bytes_sent);
  visit("wire_bytes_received", record.wire_bytes_received);
  visit("late_seconds", record.late_seconds);
  visit("late_data_seconds", record.late_data_seconds);
  visit("staleness", record.staleness);
  visit("updates", record.updates);
  visit("consensus_distance", record.consensus_distance);
}

template <ConstOr<EvaluationRecord> Record, class Visit>
void visit_fields(Record& record, Visit&& visit) {
  visit("time_seconds", record.time_seconds);
  visit("rank", record.rank);
  visit("step", record.step);
  visit("epoch", record.epoch);
  visit("split", record.split);
  visit("loss", record.loss);
  visit("top1", record.top1);
  visit("top5", record.top5);
  visit("samples", record.samples);
  visit("seconds", record.seconds);
  visit("consensus_distance", record.consensus_distance);
}

template <ConstOr<EventRecord> Record, class Visit>
void visit_fields(Record& record, Visit&& visit) {
  visit("time_seconds", record.time_seconds);
  visit("rank", record.rank);
  visit("step", record.step);
  visit("event", record.event);
  visit("detail", record.detail);
}

template <ConstOr<TrafficRecord> Record, class Visit>
void visit_fields(Record& record, Visit&& visit) {
  visit("time_seconds", record.time_seconds);
  visit("rank", record.rank);
  visit("step", record.step);
  visit("purpose", record.purpose);
  visit("bytes_sent", record.bytes_sent);
  visit("bytes_received", record.bytes_received);
  visit("wire_bytes_sent", record.wire_bytes_sent);
  visit("wire_bytes_received", record.wire_bytes_received);
}

inline const char* type_name(const StepRecord&) { return "step"; }
inline const char* type_name(const EvaluationRecord&) { return "evaluation"; }
inline const char* type_name(const EventRecord&) { return "event"; }
inline const char* type_name(const TrafficRecord&) { return "traffic"; }

}  // namespace cohort::metrics::detail
