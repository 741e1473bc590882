#include "report/run_result.h"

#include <algorithm>
#include <cmath>

#include "report/json_fields.h"

namespace cohort {
namespace {

void take_evaluations(const RunRecords& run, RunResult& result) {
  if (run.evaluations.empty()) return;
  // Of several workers' evaluations at the end, the first one's: the others evaluate copies of the
  // same model or their own, and nothing says which.
  const EvaluationRecord* last = &run.evaluations.front();
  for (const EvaluationRecord& record : run.evaluations) {
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

// Of the whole run, from its records: evaluations and pauses of a method count as time.
std::optional<double> recorded_speed(const RunRecords& run) {
  double samples = 0;
  double seconds = 0;
  for (const StepRecord& record : run.steps) {
    samples += static_cast<double>(record.samples);
    seconds = std::max(seconds, record.time_seconds);
  }
  return seconds > 0 ? std::optional(samples / seconds) : std::nullopt;
}

double last_time(const RunRecords& run) {
  double seconds = run.dumps.last_seconds();
  for (const StepRecord& record : run.steps) seconds = std::max(seconds, record.time_seconds);
  for (const EvaluationRecord& record : run.evaluations) {
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
  result.samples_per_second = number_at(run.summary, {"this_sitting", "samples_per_second"});
  if (!result.samples_per_second) result.samples_per_second = recorded_speed(run);
  for (const StepRecord& record : run.steps) {
    result.megabytes_sent += static_cast<double>(record.bytes_sent) / 1e6;
  }
  result.finished = text_at(run.summary, {"reason"}) == "finished" ||
                    text_at(run.summary, {"reason"}) == "target-reached";
  result.diverged = has_diverged(run, result);
  // Dumps and steps, not the evaluation at the end: during that nobody trains.
  double trained = run.dumps.last_seconds();
  for (const StepRecord& record : run.steps) trained = std::max(trained, record.time_seconds);
  result.freeze = find_freeze(run.dumps, trained);
  return result;
}

}  // namespace cohort
