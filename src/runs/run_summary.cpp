#include "runs/run_summary.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/text.h"
#include "metrics/over_ranks.h"
#include "runs/data_description.h"

namespace cohort::runs {
namespace {

const char* reason_name(engine::StopReason reason) {
  switch (reason) {
    case engine::StopReason::kFinished:
      return "finished";
    case engine::StopReason::kTargetReached:
      return "target-reached";
    case engine::StopReason::kInterrupted:
      return "interrupted";
  }
  return "";
}

nlohmann::json evaluation_json(const std::optional<engine::Evaluation>& evaluation, bool text) {
  if (!evaluation) return nullptr;
  nlohmann::json json = {{"loss", evaluation->loss},
                         {"top1", evaluation->top1},
                         {"top5", evaluation->top5},
                         {"samples", evaluation->samples}};
  if (text) json["perplexity"] = std::exp(evaluation->loss);
  return json;
}

nlohmann::json late_json(const engine::TrainingOutcome& outcome) {
  nlohmann::json all = nlohmann::json::array();
  for (const methods::Lateness& each : outcome.late) {
    all.push_back({{"seconds", each.seconds},
                   {"data_seconds", each.data_seconds},
                   {"steps_last", each.steps_last}});
  }
  return {{"ranks", all},
          {"text", late_text(outcome.late, outcome.steps_now, outcome.times.total())}};
}

double per_second(double count, double seconds) { return seconds > 0 ? count / seconds : 0; }

template <class Record>
nlohmann::json bytes_json(const Record& record) {
  nlohmann::json json = {{"bytes_sent", record.bytes_sent},
                         {"bytes_received", record.bytes_received}};
  if (record.wire_bytes_sent) json["wire_bytes_sent"] = *record.wire_bytes_sent;
  if (record.wire_bytes_received) json["wire_bytes_received"] = *record.wire_bytes_received;
  return json;
}

}  // namespace

std::string late_text(const std::vector<methods::Lateness>& late, Step steps, double seconds) {
  if (late.size() < 2 || steps == 0 || seconds <= 0) return "";
  const auto worst = std::max_element(
      late.begin(), late.end(),
      [](const methods::Lateness& a, const methods::Lateness& b) { return a.seconds < b.seconds; });
  const double share = worst->seconds / seconds;
  // Somebody is always last. It means something when it is the same one and costs something.
  const double by_chance = 1.0 / static_cast<double>(late.size());
  const double last = static_cast<double>(worst->steps_last) / static_cast<double>(steps);
  if (share < 0.03 || last < by_chance + 0.2 * (1 - by_chance)) return "";
  return fmt::format("rank {} held the others up {:.1f} ms a step ({:.0f}% of the time), by its {}",
                     worst - late.begin(), 1e3 * worst->seconds / static_cast<double>(steps),
                     100 * share, worst->data_seconds > worst->seconds / 2 ? "data" : "computing");
}

nlohmann::json summarize(const engine::TrainingOutcome& outcome, const metrics::RunTotals& totals,
                         const std::filesystem::path& run) {
  const metrics::StepRecord all = totals.steps();
  nlohmann::json sitting = {{"workers", totals.workers()},
                            {"steps", outcome.steps_now},
                            {"samples", all.samples},
                            {"steps_per_second", per_second(static_cast<double>(outcome.steps_now),
                                                            metrics::training_seconds(all))},
                            {"samples_per_second", metrics::samples_per_second(all)},
                            {"first_step_seconds", outcome.first_step_seconds},
                            {"data_seconds", all.data_seconds},
                            {"compute_seconds", all.compute_seconds},
                            {"exchange_seconds", all.exchange_seconds},
                            {"update_seconds", all.update_seconds},
                            {"evaluation_seconds", outcome.evaluation_seconds},
                            {"checkpoint_seconds", outcome.checkpoint_seconds}};
  sitting.update(bytes_json(all));
  sitting["outside_steps"] = nlohmann::json::object();
  for (const auto& [purpose, record] : totals.outside()) {
    sitting["outside_steps"][purpose] = bytes_json(record);
  }
  return {{"reason", reason_name(outcome.reason)},
          {"run", run.string()},
          {"steps", outcome.steps},
          {"epochs", outcome.epochs},
          {"seconds", outcome.seconds},
          {"last", evaluation_json(outcome.last, outcome.text)},
          {"best", evaluation_json(outcome.best, outcome.text)},
          {"best_step", outcome.best_step},
          {"warning", outcome.warning},
          {"late", late_json(outcome)},
          {"this_sitting", sitting}};
}

std::string length_flag(const config::RunConfig& config) {
  return config.iterations > 0 ? "--iterations" : "--epochs";
}

std::string already_done_text(const engine::TrainingOutcome& outcome,
                              const config::RunConfig& config, const std::string& run) {
  if (outcome.reason == engine::StopReason::kTargetReached) {
    return fmt::format(
        "{0} is finished: it has reached its --target-accuracy {1:g} at step {2}. To train on, "
        "raise it, or give 0 for no target: cohort train --resume {0} --target-accuracy 0",
        run, config.target_accuracy, with_commas(outcome.steps));
  }
  const std::string flag = length_flag(config);
  const std::int64_t length = config.iterations > 0 ? config.iterations : config.epochs;
  return fmt::format(
      "{0} is finished: all of its {1} steps ({2} {3}) are done. To train on, raise {2}: "
      "cohort train --resume {0} {2} {4}",
      run, with_commas(outcome.steps), flag, length, 2 * length);
}

}  // namespace cohort::runs
