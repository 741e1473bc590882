#include "report/run_result.h"

#include <algorithm>
#include <cmath>

#include "metrics/over_ranks.h"
#include "report/course.h"
#include "report/json_fields.h"

namespace cohort::report {
namespace {

void take_evaluations(const RunRecords& run, RunResult& result) {
  if (run.evaluations.empty()) return;
  // Of several workers' evaluations at the end, the first one's: the others evaluate copies of the
  // same model or their own, and nothing says which.
  const metrics::EvaluationRecord* last = &run.evaluations.front();
  for (const metrics::EvaluationRecord& record : run.evaluations) {
    if (record.step > last->step || (record.step == last->step && record.rank < last->rank)) {
      last = &record;
    }
    result.best_top1 = std::max(result.best_top1.value_or(0), record.top1);
  }
  result.last_top1 = last->top1;
  result.last_loss = last->loss;
  result.test_samples = last->samples;
}

void take_dumps(const RunRecords& run, RunResult& result) {
  if (!run.dumps.server.empty()) {
    result.server_top1 = run.dumps.server.back().score.accuracy;
    result.server_loss = run.dumps.server.back().score.loss;
  }
  double accuracy = 0;
  double loss = 0;
  for (const auto& [rank, dumps] : run.dumps.workers) {
    accuracy += dumps.back().score.accuracy;
    loss += dumps.back().score.loss;
    std::vector<Point> losses;
    for (const ScoredDump& dump : dumps) losses.push_back({dump.score.seconds, dump.score.loss});
    std::vector<Shock> shocks = find_shocks(losses);
    if (!shocks.empty()) result.shocks[rank] = std::move(shocks);
  }
  if (run.dumps.workers.empty()) return;
  const auto count = static_cast<double>(run.dumps.workers.size());
  result.workers_top1 = accuracy / count;
  result.workers_loss = loss / count;
}

// Of the whole run, from its records.
void take_totals(const RunRecords& run, RunResult& result) {
  const metrics::RunTotals totals = run.totals();
  const metrics::StepRecord all = totals.steps();
  if (metrics::training_seconds(all) > 0) {
    result.samples_per_second = metrics::samples_per_second(all);
  } else if (all.time_seconds > 0) {  // a simulation's steps have no durations
    result.samples_per_second = static_cast<double>(all.samples) / all.time_seconds;
  }
  result.megabytes_sent = static_cast<double>(all.bytes_sent) / 1e6;
  result.megabytes_received = static_cast<double>(all.bytes_received) / 1e6;
  if (all.wire_bytes_sent) {
    result.wire_megabytes_sent = static_cast<double>(*all.wire_bytes_sent) / 1e6;
  }
  result.megabytes_outside = static_cast<double>(totals.outside_sum().bytes_sent) / 1e6;
  const auto workers = number_at(run.config, {"workers"});
  const bool all_as_one = field_at(run.description, {"simulated"}) == true;
  result.recorded_workers = totals.workers();
  if (workers && !all_as_one && totals.workers() > 0) {
    result.missing_workers = std::max(0, static_cast<int>(*workers) - totals.workers());
  }
}

double last_time(const RunRecords& run) {
  double seconds = run.dumps.last_seconds();
  for (const metrics::StepRecord& record : run.steps)
    seconds = std::max(seconds, record.time_seconds);
  for (const metrics::EvaluationRecord& record : run.evaluations) {
    seconds = std::max(seconds, record.time_seconds);
  }
  return seconds;
}

bool has_diverged(const RunRecords& run, const RunResult& result) {
  if (const auto loss = result.loss(); loss && !std::isfinite(*loss)) return true;
  return !run.steps.empty() && !std::isfinite(run.steps.back().loss);
}

}  // namespace

std::optional<double> RunResult::top1() const {
  return server_top1 ? server_top1 : last_top1 ? last_top1 : workers_top1;
}

std::optional<double> RunResult::loss() const {
  return server_top1 ? server_loss : last_top1 ? last_loss : workers_loss;
}

std::size_t RunResult::shock_count() const {
  std::size_t count = 0;
  for (const auto& [rank, found] : shocks) count += found.size();
  return count;
}

RunResult result_of(const RunRecords& run) {
  RunResult result;
  take_evaluations(run, result);
  take_dumps(run, result);
  if (const auto samples = number_at(run.description, {"data", "test_samples"});
      samples && result.test_samples == 0) {
    result.test_samples = static_cast<std::int64_t>(std::clamp(*samples, 0.0, 1e15));
  }
  result.seconds = number_at(run.summary, {"seconds"}).value_or(last_time(run));
  const auto fewest = run.dumps.fewest_samples;
  if (result.judged_by_dumps() && fewest > 0) result.test_samples = fewest;
  take_totals(run, result);
  result.finished = text_at(run.summary, {"reason"}) == "finished" ||
                    text_at(run.summary, {"reason"}) == "target-reached";
  result.diverged = has_diverged(run, result);
  // Dumps and steps, not the evaluation at the end: during that nobody trains.
  double trained = run.dumps.last_seconds();
  for (const metrics::StepRecord& record : run.steps)
    trained = std::max(trained, record.time_seconds);
  result.freeze = find_freeze(run.dumps, trained);
  return result;
}

Reached reached_at(const RunRecords& run, double top1) {
  const metrics::EvaluationRecord* first = nullptr;
  for (const metrics::EvaluationRecord& record : run.evaluations) {
    if (record.top1 < top1) continue;
    if (first == nullptr || record.time_seconds < first->time_seconds) first = &record;
  }
  if (first == nullptr) return {};
  return {first->time_seconds, Positions(run, find_course("megabytes")).of(*first)};
}

}  // namespace cohort::report
