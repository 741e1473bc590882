#include "apps/run_summary.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/data_description.h"
#include "core/text.h"
#include "metrics/over_ranks.h"

namespace cohort {
namespace {

const char* reason_name(StopReason reason) {
  switch (reason) {
    case StopReason::kFinished:
      return "finished";
    case StopReason::kTargetReached:
      return "target-reached";
    case StopReason::kInterrupted:
      return "interrupted";
  }
  return "";
}

nlohmann::json evaluation_json(const std::optional<Evaluation>& evaluation, bool text) {
  if (!evaluation) return nullptr;
  nlohmann::json json = {{"loss", evaluation->loss},
                         {"top1", evaluation->top1},
                         {"top5", evaluation->top5},
                         {"samples", evaluation->samples}};
  if (text) json["perplexity"] = std::exp(evaluation->loss);
  return json;
}

nlohmann::json late_json(const TrainingOutcome& outcome) {
  nlohmann::json all = nlohmann::json::array();
  for (const Lateness& each : outcome.late) {
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

std::string megabytes_text(double bytes) { return fmt::format("{:.1f} MB", bytes / 1e6); }

// What all workers sent and received, where there is anybody to send to.
std::string traffic_text(const StepRecord& steps, const TrafficRecord& outside) {
  const auto text = [&](std::uint64_t payload, std::optional<std::uint64_t> wire) {
    const std::string with_headers =
        wire ? " (" + megabytes_text(static_cast<double>(*wire)) + " with headers)" : "";
    return megabytes_text(static_cast<double>(payload)) + with_headers;
  };
  return fmt::format("sent {}, received {} in steps; {} sent besides",
                     text(steps.bytes_sent, steps.wire_bytes_sent),
                     text(steps.bytes_received, steps.wire_bytes_received),
                     megabytes_text(static_cast<double>(outside.bytes_sent)));
}

}  // namespace

std::string late_text(const std::vector<Lateness>& late, Step steps, double seconds) {
  if (late.size() < 2 || steps == 0 || seconds <= 0) return "";
  const auto worst =
      std::max_element(late.begin(), late.end(),
                       [](const Lateness& a, const Lateness& b) { return a.seconds < b.seconds; });
  const double share = worst->seconds / seconds;
  // Somebody is always last. It means something when it is the same one and costs something.
  const double by_chance = 1.0 / static_cast<double>(late.size());
  const double last = static_cast<double>(worst->steps_last) / static_cast<double>(steps);
  if (share < 0.03 || last < by_chance + 0.2 * (1 - by_chance)) return "";
  return fmt::format("rank {} held the others up {:.1f} ms a step ({:.0f}% of the time), by its {}",
                     worst - late.begin(), 1e3 * worst->seconds / static_cast<double>(steps),
                     100 * share, worst->data_seconds > worst->seconds / 2 ? "data" : "computing");
}

void announce_run(const RunConfig& config, std::int64_t parameters, const DataSplits& data,
                  const std::filesystem::path& run) {
  fmt::print(stderr, "model    {}: {} parameters\n", config.model, with_commas(parameters));
  announce_data(config, data);
  const bool one = config.workers == 1;
  fmt::print(stderr, "method   {}{} on {}, {} thread{}{}\n", config.method,
             one ? "" : fmt::format(", {} workers by {}", config.workers, config.engine),
             config.device, config.threads, config.threads == 1 ? "" : "s", one ? "" : " each");
  fmt::print(stderr, "run      {}\n", run.string());
}

nlohmann::json summarize(const TrainingOutcome& outcome, const RunTotals& totals,
                         const std::filesystem::path& run) {
  const StepRecord all = totals.steps();
  nlohmann::json sitting = {{"workers", totals.workers()},
                            {"steps", outcome.steps_now},
                            {"samples", all.samples},
                            {"steps_per_second", per_second(static_cast<double>(outcome.steps_now),
                                                            training_seconds(all))},
                            {"samples_per_second", samples_per_second(all)},
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

std::string length_flag(const RunConfig& config) {
  return config.iterations > 0 ? "--iterations" : "--epochs";
}

std::string already_done_text(const TrainingOutcome& outcome, const RunConfig& config,
                              const std::string& run) {
  if (outcome.reason == StopReason::kTargetReached) {
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

void print_interruption(std::FILE* out, const TrainingOutcome& outcome,
                        const std::filesystem::path& run) {
  if (outcome.reason != StopReason::kInterrupted) return;
  fmt::print(out,
             "interrupted after step {}; everything is saved. Go on with:\n"
             "  cohort train --resume {}\n",
             with_commas(outcome.steps), run.string());
}

void print_summary(std::FILE* out, const TrainingOutcome& outcome, const RunTotals& totals,
                   int workers, const std::filesystem::path& run) {
  const StepRecord all = totals.steps();
  const double total =
      training_seconds(all) + outcome.evaluation_seconds + outcome.checkpoint_seconds;
  const auto share = [&](double seconds) { return total > 0 ? 100 * seconds / total : 0; };
  fmt::print(out, "\n");
  print_interruption(out, outcome, run);
  if (outcome.last && outcome.text) {
    fmt::print(
        out,
        "perplexity     {:.2f} (loss {:.4f}), next word right {:.2f}%; best {:.2f} at step {}\n",
        std::exp(outcome.last->loss), outcome.last->loss, 100 * outcome.last->top1,
        std::exp(outcome.best->loss), with_commas(outcome.best_step));
  } else if (outcome.last) {
    fmt::print(out,
               "test accuracy  {:.2f}% (top-5 {:.2f}%), loss {:.4f}; best {:.2f}% at step {}\n",
               100 * outcome.last->top1, 100 * outcome.last->top5, outcome.last->loss,
               100 * outcome.best->top1, with_commas(outcome.best_step));
  }
  // Workers of other processes that are not in step record for themselves.
  const std::string of = totals.workers() < workers
                             ? fmt::format(" by {} of {} workers", totals.workers(), workers)
                             : "";
  fmt::print(out, "steps          {} in {:.1f} s: {:.0f} {}/s{} while training\n",
             with_commas(outcome.steps_now), total, samples_per_second(all),
             outcome.text ? "words" : "samples", of);
  if (workers > 1) {
    fmt::print(out, "traffic        {}{}\n", traffic_text(all, totals.outside_sum()), of);
  }
  fmt::print(out,
             "time           compute {:.1f}%  update {:.1f}%  exchange {:.1f}%  data wait {:.1f}%  "
             "evaluation {:.1f}%  checkpoints {:.1f}%\n",
             share(all.compute_seconds), share(all.update_seconds), share(all.exchange_seconds),
             share(all.data_seconds), share(outcome.evaluation_seconds),
             share(outcome.checkpoint_seconds));
  if (const std::string late = late_text(outcome.late, outcome.steps_now, training_seconds(all));
      !late.empty()) {
    fmt::print(out, "late           {}\n", late);
  }
  if (!outcome.warning.empty()) fmt::print(out, "warning        {}\n", outcome.warning);
  fmt::print(out, "run directory  {}\n", run.string());
}

}  // namespace cohort
