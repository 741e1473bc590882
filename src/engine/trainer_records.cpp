// What a trainer records of its steps, and of all workers' bytes.
#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "engine/trainer.h"
#include "methods/server_log.h"

namespace cohort {
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

}  // namespace

RankReport Trainer::own_report() {
  RankReport own{sums_.values(), times_, traffic_.take(), parts_.has_links, {}};
  if (parts_.arrivals != nullptr) own.arrivals = parts_.arrivals->take();
  return own;
}

void Trainer::record_steps() {
  if (recorded_ == done_) return;
  // What the last step has under way belongs to this record.
  parts_.method.drain(parts_.replica);
  undo_step();
  if (recorded_ >= done_) return;
  times_ += step_->finish();  // throws: what diverged is never saved
  const RankReport own = own_report();
  outcome_.traffic += own.traffic[static_cast<std::size_t>(TrafficPurpose::kSteps)];
  const TrafficBook::Scope scope(traffic_, TrafficPurpose::kCoordination);
  const std::vector<RankReport> reports = gather_reports(own, parts_.group);
  record_ranks(reports);
  record_traffic(reports);
  watch_loss(reports);
  outcome_.times += times_;
  times_ = {};
  sums_.reset();
  recorded_ = done_;
}

// All workers that keep in step see the same.
void Trainer::watch_loss(const std::vector<RankReport>& reports) {
  double loss = 0;
  std::int64_t samples = 0;
  for (const RankReport& report : reports) {
    loss += report.sums.loss;
    samples += report.sums.samples;
  }
  const std::string warning = watch_.add(loss, samples, done_ - recorded_);
  if (warning.empty() || !leads_now()) return;
  parts_.outlets.progress->note("warning: " + warning);
  event("not-learning", warning);
}

void Trainer::record_ranks(const std::vector<RankReport>& reports) {
  if (!leads_now()) return;
  std::vector<std::vector<StepArrivals>> arrivals;
  for (const RankReport& report : reports) arrivals.push_back(report.arrivals);
  const std::vector<Lateness> late = find_late(arrivals, clock_offsets_);
  outcome_.late.resize(reports.size());
  std::vector<StepRecord> records;
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    const RankReport& report = reports[rank];
    outcome_.late[rank].add(late[rank]);
    if (report.sums.samples == 0) continue;
    const auto samples = static_cast<double>(report.sums.samples);
    StepRecord record;
    record.time_seconds = now();
    record.rank = rank_of(rank);
    record.step = done_;
    record.epoch = epoch_at(done_);
    record.loss = report.sums.loss / samples;
    record.top1 = static_cast<double>(report.sums.top1) / samples;
    record.top5 = static_cast<double>(report.sums.top5) / samples;
    record.lr = parts_.schedule.at(epoch_at(done_ - 1));
    record.samples = report.sums.samples;
    record.data_seconds = report.times.data_seconds;
    record.compute_seconds = report.times.compute_seconds;
    record.exchange_seconds = report.times.exchange_seconds;
    record.update_seconds = report.times.update_seconds;
    record.steps = done_ - recorded_;
    set_bytes(record, report, TrafficPurpose::kSteps);
    if (parts_.server_log != nullptr) {
      const ServerLog::Sums pushes = parts_.server_log->take();
      if (pushes.pushes > 0) {
        record.staleness =
            static_cast<double>(pushes.staleness) / static_cast<double>(pushes.pushes);
      }
      record.updates = static_cast<std::int64_t>(parts_.server_log->updates());
    }
    if (reports.size() > 1) {
      record.late_seconds = late[rank].seconds;
      record.late_data_seconds = late[rank].data_seconds;
    }
    parts_.outlets.metrics->record(record);
    records.push_back(record);
  }
  // Whoever shows one of them can know them all.
  for (const StepRecord& record : records) parts_.outlets.progress->recorded(record);
}

void Trainer::record_traffic(const std::vector<RankReport>& reports) {
  if (!leads_now()) return;
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    for (std::size_t i = 1; i < kTrafficPurposes.size(); ++i) {
      if (reports[rank].traffic[i] == Traffic{}) continue;
      TrafficRecord record{now(), rank_of(rank), done_, kTrafficPurposes[i]};
      set_bytes(record, reports[rank], static_cast<TrafficPurpose>(i));
      parts_.outlets.metrics->record(record);
    }
  }
}

}  // namespace cohort
