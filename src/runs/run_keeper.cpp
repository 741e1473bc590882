#include "runs/run_keeper.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "core/error.h"
#include "runs/run_summary.h"
#include "runs/swamp_host.h"
#include "storage/dump_files.h"

namespace cohort::runs {

RunKeeper::RunKeeper(RunFiles files, nlohmann::json document, bool resumed)
    : files_(std::move(files)),
      document_(std::move(document)),
      resumed_(resumed),
      metrics_({&files_.run.metrics(), &totals_}) {}

engine::TrainerOutlets RunKeeper::outlets(engine::Progress& progress) {
  return {.metrics = &metrics_,
          .progress = &progress,
          .checkpoints = &files_.checkpoints,
          .run = &files_.run,
          .dumps = dumps_.get()};
}

void RunKeeper::start_dumps(const config::RunConfig& config, const std::string& root,
                            double earlier_seconds,
                            const std::function<void(const std::string&)>& note) {
  if (config.dump_every == 0) return;
  storage::DumpWriterOptions options;
  // A run that goes on has them where it began to.
  const bool directly = std::filesystem::exists(path() / storage::DumpName{}.series());
  options.root = path() / (directly ? "." : root);
  options.keep = config.keep_dumps;
  options.drop_when_slow = config.dump_drop;
  options.earlier_seconds = earlier_seconds;
  options.note = note;
  dumps_ = std::make_unique<storage::DumpWriter>(std::move(options));
}

void RunKeeper::finish_dumps(const std::function<void(const std::string&)>& note) {
  if (!dumps_) return;
  const storage::DumpCounts counts = dumps_->finish();
  if (counts.failed > 0) {
    note(fmt::format("warning: {} of {} models could not be dumped", counts.failed,
                     counts.failed + counts.written));
  }
  if (counts.left_out > 0) {
    note(
        fmt::format("warning: {} models were not dumped because the disk was too slow: give a "
                    "larger --dump-every, or leave out --dump-drop to wait for it",
                    counts.left_out));
  }
}

void RunKeeper::resume(engine::Trainer& trainer, const config::RunConfig& config, Step total) {
  if (files_.checkpoint) {
    const storage::LoadedCheckpoint& checkpoint = *files_.checkpoint;
    if (checkpoint.step > total) {
      throw ConfigError(fmt::format("{} is at step {} already, beyond the {} asked for: raise {}",
                                    path().string(), checkpoint.step, total, length_flag(config)));
    }
    trainer.resume(checkpoint);
    files_.run.rewind_metrics(checkpoint.extra["engine"].value("metrics_bytes", std::uint64_t{0}));
    files_.checkpoint.reset();  // its memory is of no more use
  }
  if (resumed_) files_.run.write_run_json(document_);
}

void RunKeeper::summarize(FinishedRun& result) {
  const engine::TrainingOutcome& outcome = result.outcome;
  result.path = path();
  result.totals = totals_.totals();
  result.summary = runs::summarize(outcome, result.totals, path());
  if (result.swamp) result.summary["swamp"] = to_json(*result.swamp);
  result.had_nothing_to_do = resumed_ && outcome.steps_now == 0 &&
                             outcome.evaluation_seconds == 0 &&
                             outcome.reason != engine::StopReason::kInterrupted;
  // What the sitting that trained has measured stays.
  if (result.had_nothing_to_do && std::filesystem::exists(path() / "summary.json")) return;
  files_.run.write_summary(result.summary);
}

}  // namespace cohort::runs
