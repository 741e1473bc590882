#include "engine/trainer.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/clock.h"
#include "core/error.h"
#include "engine/checkpointing.h"

namespace cohort {
namespace {

// JSON has no NaN: the loss of a diverged model is null.
nlohmann::json to_json(const Evaluation& evaluation) {
  return {{"loss", std::isfinite(evaluation.loss) ? nlohmann::json(evaluation.loss) : nullptr},
          {"top1", evaluation.top1},
          {"top5", evaluation.top5},
          {"samples", evaluation.samples},
          {"seconds", evaluation.seconds}};
}

Evaluation evaluation_from(const nlohmann::json& json) {
  const nlohmann::json& loss = json.at("loss");
  return {loss.is_null() ? std::nan("") : loss.get<double>(), json.at("top1"), json.at("top5"),
          json.at("samples"), json.at("seconds")};
}

void add(StepTimes& total, const StepTimes& part) {
  total.data_seconds += part.data_seconds;
  total.compute_seconds += part.compute_seconds;
  total.exchange_seconds += part.exchange_seconds;
  total.update_seconds += part.update_seconds;
}

bool due(Step done, Step every) { return every > 0 && done % every == 0; }

}  // namespace

Trainer::Trainer(const TrainerParts& parts, const TrainerOptions& options)
    : parts_(parts), options_(options), start_(Clock::now()) {}

double Trainer::epoch_at(Step step) const {
  return static_cast<double>(step) / static_cast<double>(parts_.order.steps_per_epoch());
}

double Trainer::now() const { return earlier_seconds_ + seconds_between(start_, Clock::now()); }

void Trainer::resume(const LoadedCheckpoint& checkpoint) {
  restore(checkpoint, parts_.replica, parts_.method);
  done_ = checkpoint.step;
  recorded_ = done_;
  saved_ = done_;
  try {
    const nlohmann::json& state = checkpoint.extra.at("engine");
    earlier_seconds_ = state.at("seconds");
    evaluated_ = state.at("evaluated_step");
    if (state.contains("last")) outcome_.last = evaluation_from(state.at("last"));
    if (state.contains("best")) {
      outcome_.best = evaluation_from(state.at("best"));
      outcome_.best_step = state.at("best_step");
    }
  } catch (const nlohmann::json::exception& error) {
    throw FileError(checkpoint.folder.string() +
                    ": its manifest lacks the engine's state: " + error.what());
  }
}

nlohmann::json Trainer::engine_state() const {
  nlohmann::json state = {
      {"seconds", now()}, {"epoch", epoch_at(done_)}, {"evaluated_step", evaluated_}};
  if (parts_.metrics_bytes) state["metrics_bytes"] = parts_.metrics_bytes();
  if (outcome_.last) state["last"] = to_json(*outcome_.last);
  if (outcome_.best) {
    state["best"] = to_json(*outcome_.best);
    state["best_step"] = outcome_.best_step;
  }
  return state;
}

bool Trainer::target_reached() const {
  return options_.target_accuracy > 0 && outcome_.last &&
         outcome_.last->top1 >= options_.target_accuracy;
}

TrainingOutcome Trainer::run(const std::atomic<bool>& stop) {
  start_ = Clock::now();
  event(done_ == 0 ? "start" : "resume", fmt::format("from step {}", done_));
  parts_.method.start(parts_.replica);
  parts_.progress.begin({options_.total_steps, parts_.order.steps_per_epoch()}, done_);
  try {
    train_until_done(stop);
  } catch (...) {
    parts_.progress.end();  // leaves the terminal in order
    throw;
  }
  parts_.method.settle(parts_.replica);
  const bool interrupted = stop && done_ < options_.total_steps;
  // A person who pressed Ctrl-C waits for the checkpoint, not for an evaluation.
  if (!interrupted) evaluate_now();
  if (target_reached()) outcome_.reason = StopReason::kTargetReached;
  if (interrupted) outcome_.reason = StopReason::kInterrupted;
  checkpoint_now(Occasion::kLast);
  outcome_.steps = done_;
  outcome_.seconds = now();
  event(interrupted ? "interrupt" : "finish", fmt::format("after {} steps", done_));
  parts_.metrics.flush();
  parts_.progress.end();
  return outcome_;
}

void Trainer::train_until_done(const std::atomic<bool>& stop) {
  Loader loader = make_loader(
      parts_.train, parts_.order,
      {.threads = options_.loader_threads, .first_step = done_, .last_step = options_.total_steps},
      options_.placement.device);
  TrainingStep step(parts_.model, parts_.replica, parts_.method, options_.step);
  parts_.model.store().set_training(true);
  while (done_ < options_.total_steps && !stop && !target_reached()) {
    one_step(loader, step);
    const bool record = due(done_, options_.record_every_steps);
    const bool evaluation = due(done_, options_.eval_every_steps);
    const bool checkpoint = due(done_, options_.checkpoint_every_steps);
    if (record || evaluation || checkpoint) step.check_losses();  // never save what diverged
    if (record) record_steps();
    if (evaluation) evaluate_now();
    if (checkpoint) checkpoint_now();
  }
  step.check_losses();
}

void Trainer::one_step(Loader& loader, TrainingStep& step) {
  StepTimes times;
  const Clock::time_point asked = Clock::now();
  const LoadedBatch loaded = loader.next();
  times.data_seconds = seconds_between(asked, Clock::now());
  BatchTensors batch;
  {
    const StopWatch watch(times.compute_seconds);
    batch = to_tensors(loaded, parts_.train.shape(), options_.placement);
  }
  // A shard may have no sample left in an epoch's last batch: nothing to learn, nothing to do.
  if (loaded.size() > 0) {
    step.run(batch, {done_, parts_.schedule.at(epoch_at(done_))}, sums_, times);
  }
  add(times_, times);
  outcome_.samples_now += batch.labels.size(0);
  ++done_;
  ++outcome_.steps_now;
  if (outcome_.steps_now == 1) outcome_.first_step_seconds = seconds_between(start_, Clock::now());
  parts_.progress.step(done_);
}

void Trainer::record_steps() {
  if (recorded_ == done_) return;
  const ClassificationSums::Values sums = sums_.values();
  if (sums.samples == 0) return;
  const auto samples = static_cast<double>(sums.samples);
  StepRecord record;
  record.time_seconds = now();
  record.rank = options_.step.rank;
  record.step = done_;
  record.epoch = epoch_at(done_);
  record.loss = sums.loss / samples;
  record.top1 = static_cast<double>(sums.top1) / samples;
  record.top5 = static_cast<double>(sums.top5) / samples;
  record.lr = parts_.schedule.at(epoch_at(done_ - 1));
  record.samples = sums.samples;
  record.data_seconds = times_.data_seconds;
  record.compute_seconds = times_.compute_seconds;
  record.exchange_seconds = times_.exchange_seconds;
  record.update_seconds = times_.update_seconds;
  record.steps = done_ - recorded_;
  parts_.metrics.record(record);
  parts_.progress.recorded(record);
  add(outcome_.times, times_);
  times_ = {};
  sums_.reset();
  recorded_ = done_;
}

void Trainer::evaluate_now() {
  if (parts_.test == nullptr || evaluated_ == done_) return;
  record_steps();
  parts_.method.settle(parts_.replica);
  const Evaluation result = evaluate(parts_.model, *parts_.test, options_.evaluation);
  outcome_.evaluation_seconds += result.seconds;
  outcome_.last = result;
  if (!outcome_.best || result.top1 > outcome_.best->top1) {
    outcome_.best = result;
    outcome_.best_step = done_;
    best_unsaved_ = true;
  }
  evaluated_ = done_;
  const EvaluationRecord record{now(),          options_.step.rank, done_,       epoch_at(done_),
                                "test",         result.loss,        result.top1, result.top5,
                                result.samples, result.seconds};
  parts_.metrics.record(record);
  parts_.progress.evaluated(record);
  if (best_unsaved_) checkpoint_now();
}

void Trainer::checkpoint_now(Occasion occasion) {
  record_steps();
  const bool best = best_unsaved_ && outcome_.best_step == done_;
  // What was saved before it was evaluated is saved again when it turns out to be the best.
  if (parts_.checkpoints == nullptr || (saved_ == done_ && !best)) return;
  parts_.method.settle(parts_.replica);
  const StopWatch watch(outcome_.checkpoint_seconds);
  try {
    event("checkpoint", best ? "best so far" : "");
    parts_.metrics.flush();
    const Snapshot snapshot(parts_.replica, parts_.method, done_, engine_state());
    parts_.checkpoints->save(snapshot.contents(), best);
    saved_ = done_;
    if (best) best_unsaved_ = false;
  } catch (const FileError& error) {
    // A full disk costs a checkpoint, not the training: the next one may succeed. At the end there
    // is no next one.
    if (occasion == Occasion::kLast || done_ >= options_.total_steps) throw;
    parts_.progress.note(std::string("warning: no checkpoint at step ") + std::to_string(done_) +
                         ", earlier ones are kept: " + error.what());
    try {
      event("checkpoint-failed", error.what());
    } catch (const FileError&) {  // the same full disk; it has been said above
    }
  }
}

void Trainer::event(const char* name, const std::string& detail) {
  parts_.metrics.record(EventRecord{now(), options_.step.rank, done_, name, detail});
}

}  // namespace cohort
