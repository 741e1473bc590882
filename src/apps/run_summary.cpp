#include "apps/run_summary.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

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

std::string with_commas(std::int64_t number) {
  std::string text = std::to_string(number);
  for (std::ptrdiff_t i = static_cast<std::ptrdiff_t>(text.size()) - 3; i > (number < 0 ? 1 : 0);
       i -= 3) {
    text.insert(static_cast<std::size_t>(i), ",");
  }
  return text;
}

nlohmann::json summarize(const TrainingOutcome& outcome, const std::filesystem::path& run) {
  const double seconds = outcome.times.total();
  return {{"reason", reason_name(outcome.reason)},
          {"run", run.string()},
          {"steps", outcome.steps},
          {"epochs", outcome.epochs},
          {"seconds", outcome.seconds},
          {"last", evaluation_json(outcome.last, outcome.text)},
          {"best", evaluation_json(outcome.best, outcome.text)},
          {"best_step", outcome.best_step},
          {"late", late_json(outcome)},
          {"this_sitting",
           {{"steps", outcome.steps_now},
            {"samples", outcome.samples_now},
            {"steps_per_second", per_second(static_cast<double>(outcome.steps_now), seconds)},
            {"samples_per_second", per_second(static_cast<double>(outcome.samples_now), seconds)},
            {"first_step_seconds", outcome.first_step_seconds},
            {"data_seconds", outcome.times.data_seconds},
            {"compute_seconds", outcome.times.compute_seconds},
            {"exchange_seconds", outcome.times.exchange_seconds},
            {"update_seconds", outcome.times.update_seconds},
            {"bytes_sent", outcome.traffic.sent},
            {"bytes_received", outcome.traffic.received},
            {"evaluation_seconds", outcome.evaluation_seconds},
            {"checkpoint_seconds", outcome.checkpoint_seconds}}}};
}

void print_summary(std::FILE* out, const TrainingOutcome& outcome,
                   const std::filesystem::path& run) {
  const StepTimes& times = outcome.times;
  const double total = times.total() + outcome.evaluation_seconds + outcome.checkpoint_seconds;
  const auto share = [&](double seconds) { return total > 0 ? 100 * seconds / total : 0; };
  fmt::print(out, "\n");
  if (outcome.reason == StopReason::kInterrupted) {
    fmt::print(out,
               "interrupted after step {}; everything is saved. Go on with:\n"
               "  cohort train --resume {}\n",
               with_commas(outcome.steps), run.string());
  }
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
  fmt::print(out, "steps          {} in {:.1f} s: {:.0f} {}/s while training\n",
             with_commas(outcome.steps_now), total,
             per_second(static_cast<double>(outcome.samples_now), times.total()),
             outcome.text ? "words" : "samples");
  fmt::print(out,
             "time           compute {:.1f}%  update {:.1f}%  exchange {:.1f}%  data wait {:.1f}%  "
             "evaluation {:.1f}%  checkpoints {:.1f}%\n",
             share(times.compute_seconds), share(times.update_seconds),
             share(times.exchange_seconds), share(times.data_seconds),
             share(outcome.evaluation_seconds), share(outcome.checkpoint_seconds));
  if (const std::string late = late_text(outcome.late, outcome.steps_now, times.total());
      !late.empty()) {
    fmt::print(out, "late           {}\n", late);
  }
  fmt::print(out, "run directory  {}\n", run.string());
}

}  // namespace cohort
