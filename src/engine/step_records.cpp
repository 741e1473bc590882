#include "engine/step_records.h"

#include <utility>

#include "methods/server_log.h"

namespace cohort::engine {
namespace {

template <class Record>
void set_bytes(Record& record, const RankReport& report, TrafficPurpose purpose) {
  const Traffic& traffic = report.traffic[static_cast<std::size_t>(purpose)];
  record.bytes_sent = traffic.sent;
  record.bytes_received = traffic.received;
  if (!report.has_links) return;
  record.wire_bytes_sent = traffic.wire_sent;
  record.wire_bytes_received = traffic.wire_received;
}

LossWatchOptions watch_options(const TrainingState& state) {
  return {.classes = state.options.watched_classes,
          .may_drift = state.options.may_drift,
          .steps_per_epoch = state.parts.order.steps_per_epoch(),
          .total_steps = state.options.total_steps};
}

}  // namespace

StepRecords::StepRecords(TrainingState& state) : state_(state), watch_(watch_options(state)) {}

void StepRecords::begin() { clock_offsets_ = state_.parts.group.clock_offsets(); }

void StepRecords::begin_late() {
  clock_offsets_.assign(static_cast<std::size_t>(state_.parts.group.size()), 0.0);
}

Rank StepRecords::rank_of(std::size_t report) const {
  return state_.parts.group.alone() ? state_.options.step.rank : static_cast<Rank>(report);
}

RankReport StepRecords::own_report() {
  RankReport own{sums_.values(), state_.times, state_.traffic.take(), state_.parts.has_links, {}};
  if (state_.parts.arrivals != nullptr) own.arrivals = state_.parts.arrivals->take();
  return own;
}

bool StepRecords::due() const {
  const TrainerOptions& options = state_.options;
  return options.due.record ? options.due.record(state_.done)
                            : state_.done % options.record_every_steps == 0;
}

void StepRecords::record() {
  if (state_.recorded == state_.done) return;
  // What the last step has under way belongs to this record.
  if (state_.exchange != nullptr) state_.exchange->drain(state_.parts.replica);
  state_.undo_step();
  if (state_.recorded >= state_.done) return;
  state_.times += step_->finish();  // throws: what diverged is never saved
  const RankReport own = own_report();
  state_.outcome.traffic += own.traffic[static_cast<std::size_t>(TrafficPurpose::kSteps)];
  const TrafficBook::Scope scope(state_.traffic, TrafficPurpose::kCoordination);
  const std::vector<RankReport> reports = gather_reports(own, state_.parts.group);
  record_ranks(reports);
  record_traffic(reports);
  watch_loss(reports);
  state_.outcome.times += std::exchange(state_.times, {});
  sums_.reset();
  state_.recorded = state_.done;
}

void StepRecords::finish() {
  TrainingOutcome& outcome = state_.outcome;
  const bool tested = outcome.last && state_.evaluated == state_.done;
  outcome.warning =
      watch_.verdict_at_end(tested ? std::optional(outcome.last->loss) : std::nullopt);
  record_traffic(gather_reports(own_report(), state_.parts.group));
}

// All workers that keep in step see the same.
void StepRecords::watch_loss(const std::vector<RankReport>& reports) {
  double loss = 0;
  std::int64_t samples = 0;
  for (const RankReport& report : reports) {
    loss += report.sums.loss;
    samples += report.sums.samples;
  }
  const std::string warning = watch_.add(loss, samples, state_.done - state_.recorded);
  if (warning.empty() || !state_.leads()) return;
  state_.note("warning: " + warning);
  state_.event("not-learning", warning);
}

void StepRecords::record_ranks(const std::vector<RankReport>& reports) {
  if (!state_.leads()) return;
  const TrainerParts& parts = state_.parts;
  std::vector<std::vector<methods::StepArrivals>> arrivals;
  for (const RankReport& report : reports) arrivals.push_back(report.arrivals);
  const std::vector<methods::Lateness> late = methods::find_late(arrivals, clock_offsets_);
  state_.outcome.late.resize(reports.size());
  std::vector<metrics::StepRecord> records;
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    const RankReport& report = reports[rank];
    state_.outcome.late[rank].add(late[rank]);
    if (report.sums.samples == 0) continue;
    const auto samples = static_cast<double>(report.sums.samples);
    metrics::StepRecord record;
    record.time_seconds = state_.now();
    record.rank = rank_of(rank);
    record.step = state_.done;
    record.epoch = state_.epoch();
    record.loss = report.sums.loss / samples;
    record.top1 = static_cast<double>(report.sums.top1) / samples;
    record.top5 = static_cast<double>(report.sums.top5) / samples;
    record.lr = parts.schedule.at(parts.order.epochs_at(state_.done - 1));
    record.samples = report.sums.samples;
    record.data_seconds = report.times.data_seconds;
    record.compute_seconds = report.times.compute_seconds;
    record.exchange_seconds = report.times.exchange_seconds;
    record.update_seconds = report.times.update_seconds;
    record.steps = state_.done - state_.recorded;
    set_bytes(record, report, TrafficPurpose::kSteps);
    if (parts.server_log != nullptr) {
      const methods::ServerLog::Sums pushes = parts.server_log->take();
      if (pushes.pushes > 0) {
        record.staleness =
            static_cast<double>(pushes.staleness) / static_cast<double>(pushes.pushes);
      }
      record.updates = static_cast<std::int64_t>(parts.server_log->updates());
    }
    if (reports.size() > 1) {
      record.late_seconds = late[rank].seconds;
      record.late_data_seconds = late[rank].data_seconds;
    }
    parts.outlets.metrics->record(record);
    records.push_back(record);
  }
  // Whoever shows one of them can know them all.
  for (const metrics::StepRecord& record : records) parts.outlets.progress->recorded(record);
}

void StepRecords::record_traffic(const std::vector<RankReport>& reports) {
  if (!state_.leads()) return;
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    for (std::size_t i = 1; i < kTrafficPurposes.size(); ++i) {
      if (reports[rank].traffic[i] == Traffic{}) continue;
      metrics::TrafficRecord record{state_.now(), rank_of(rank), state_.done, kTrafficPurposes[i]};
      set_bytes(record, reports[rank], static_cast<TrafficPurpose>(i));
      state_.parts.outlets.metrics->record(record);
    }
  }
}

}  // namespace cohort::engine
