#include "apps/announcements.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>

#include "apps/environment.h"
#include "core/text.h"
#include "data/text.h"
#include "engine/assemble.h"
#include "metrics/over_ranks.h"
#include "runs/run_summary.h"

namespace cohort::apps {
namespace {

std::string data_text(const config::RunConfig& config, const data::DataSplits& data) {
  const std::string place = data.found_at.empty() ? "" : ", from " + data.found_at.string();
  const data::TextDataset* train = data::as_text(*data.train);
  const data::TextDataset* test = data::as_text(*data.test);
  if (train != nullptr && test != nullptr) {
    return fmt::format(
        "{} training and {} {} words, {} different ones; read in {} columns, {} words of each at a "
        "time{}",
        with_commas(train->words()), with_commas(test->words()), config.eval_split,
        with_commas(static_cast<std::int64_t>(train->class_names().size())),
        with_commas(train->columns()), train->shape().width, place);
  }
  const data::SampleShape shape = data.train->shape();
  const std::int64_t apart = engine::validation_size(config, *data.train);
  const std::string validation = apart > 0 ? ", " + with_commas(apart) + " validation" : "";
  return fmt::format("{} training{} and {} test samples of {}x{}x{}, {} classes{}",
                     with_commas(data.train->size() - apart), validation,
                     with_commas(data.test->size()), shape.channels, shape.height, shape.width,
                     data.train->class_names().size(), place);
}

std::string megabytes_text(double bytes) { return fmt::format("{:.1f} MB", bytes / 1e6); }

// What all workers sent and received, where there is anybody to send to.
std::string traffic_text(const metrics::StepRecord& steps, const metrics::TrafficRecord& outside) {
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

void announce_note(const std::string& line) { fmt::print(stderr, "cohort: {}\n", line); }

void announce_data(const config::RunConfig& config, const data::DataSplits& data) {
  fmt::print(stderr, "data     {}: {}\n", config.data, data_text(config, data));
  for (const std::string& note : data.notes) fmt::print(stderr, "note     {}\n", note);
}

std::unique_ptr<data::DataSplits> open_announced_data(const config::RunConfig& config) {
  auto data = engine::open_data(config, data_search_path());
  announce_data(config, *data);
  return data;
}

void announce_run(const config::RunConfig& config, std::int64_t parameters,
                  const data::DataSplits& data, const std::filesystem::path& run) {
  fmt::print(stderr, "model    {}: {} parameters\n", config.model, with_commas(parameters));
  announce_data(config, data);
  const bool one = config.workers == 1;
  fmt::print(stderr, "method   {}{} on {}, {} thread{}{}\n", config.method,
             one ? "" : fmt::format(", {} workers by {}", config.workers, config.engine),
             config.device, config.threads, config.threads == 1 ? "" : "s", one ? "" : " each");
  fmt::print(stderr, "run      {}\n", run.string());
}

void print_interruption(std::FILE* out, const engine::TrainingOutcome& outcome,
                        const std::filesystem::path& run) {
  if (outcome.reason != engine::StopReason::kInterrupted) return;
  fmt::print(out,
             "interrupted after step {}; everything is saved. Go on with:\n"
             "  cohort train --resume {}\n",
             with_commas(outcome.steps), run.string());
}

void print_summary(std::FILE* out, const engine::TrainingOutcome& outcome,
                   const metrics::RunTotals& totals, int workers,
                   const std::filesystem::path& run) {
  const metrics::StepRecord all = totals.steps();
  const double total =
      metrics::training_seconds(all) + outcome.evaluation_seconds + outcome.checkpoint_seconds;
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
             with_commas(outcome.steps_now), total, metrics::samples_per_second(all),
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
  if (const std::string late =
          runs::late_text(outcome.late, outcome.steps_now, metrics::training_seconds(all));
      !late.empty()) {
    fmt::print(out, "late           {}\n", late);
  }
  if (!outcome.warning.empty()) fmt::print(out, "warning        {}\n", outcome.warning);
  fmt::print(out, "run directory  {}\n", run.string());
}

}  // namespace cohort::apps
