#include "engine/trainer.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "core/clock.h"
#include "core/error.h"
#include "core/failpoint.h"
#include "engine/checkpointing.h"
#include "methods/server_log.h"

namespace cohort::engine {

Trainer::Trainer(const TrainerParts& parts, const TrainerOptions& options)
    : state_(parts, options),
      records_(state_),
      evaluation_(state_),
      checkpoints_(state_),
      group_(state_, records_, checkpoints_) {}

TrainingOutcome Trainer::run(const std::atomic<bool>& stop) {
  state_.start = Clock::now();
  state_.options.evaluation.stop = &stop;
  state_.options.evaluation.progress = [this](double share) {
    state_.parts.outlets.progress->evaluating(share);
  };
  begin();
  try {
    train_until_done(stop);
  } catch (...) {
    state_.parts.outlets.progress->end();  // leaves the terminal in order
    throw;
  }
  state_.drain();  // the last exchange is of the steps
  records_.record();
  finish();
  return state_.outcome;
}

void Trainer::begin() {
  state_.parts.method.start(state_.parts.replica);  // a worker that servers refuse records nothing
  if (const methods::ServerLog* const log = state_.parts.server_log;
      log != nullptr && log->first_step()) {
    go_to(*log->first_step());
  }
  state_.event(state_.done == 0 ? "start" : "resume", fmt::format("from step {}", state_.done));
  if (state_.options.enters) {
    group_.enter();
  } else {
    checkpoints_.share();
    records_.begin();
    group_.begin();
  }
  state_.begin_progress();
}

// Where the model that servers have in common stands, instead of the own checkpoint.
void Trainer::go_to(Step step) {
  step = std::max(step, state_.parts.order.start().step);
  const Step before = state_.done;
  if (step == before) return;
  state_.note(fmt::format(
      "going on from step {} of this worker, which is where the servers' model stands{}", step,
      before > 0 ? fmt::format(", instead of {}", before) : ""));
  state_.stand_at(step);
  state_.saved = -1;
  if (state_.evaluated > step) state_.evaluated = -1;
}

void Trainer::train_until_done(const std::atomic<bool>& stop) {
  const TrainerParts& parts = state_.parts;
  const TrainerOptions& options = state_.options;
  const auto source = make_batch_source(parts.train, parts.order,
                                        {.threads = options.loader_threads,
                                         .first_step = state_.done,
                                         .last_step = options.total_steps},
                                        options.placement);
  step_.emplace(parts.model, parts.replica, parts.method, options.step);
  records_.follow(*step_);
  parts.model.store().set_training(true);
  if (options.enters) {
    after_step();
  } else {
    state_.stopping = parts.group.any(stop);
  }
  state_.traffic.turn_to(TrafficPurpose::kSteps);
  while (goes_on()) {
    try {
      one_step(*source);
    } catch (const InterruptedError&) {
      if (parts.server_log == nullptr || !stop) throw;
      state_.undo_step();
      state_.stopping = true;
      break;
    }
    group_.after_step(stop);
    dump_if_due();
    after_step();
  }
}

bool Trainer::goes_on() const {
  // Others may have made the last update of the model in common.
  const methods::ServerLog* const log = state_.parts.server_log;
  return state_.done < state_.options.total_steps && !state_.stopping &&
         !evaluation_.target_reached() && !(log != nullptr && log->finished());
}

void Trainer::one_step(BatchSource& source) {
  TrainerParts& parts = state_.parts;
  TrainingOutcome& outcome = state_.outcome;
  const Step step = state_.done;
  parts.group.doing(step, Phase::kLoading);
  const Clock::time_point asked = Clock::now();
  COHORT_FAILPOINT("training.load.rank" + std::to_string(state_.options.step.rank));
  source.wait();
  const double waited = seconds_between(asked, Clock::now());
  parts.group.doing(step, Phase::kComputing);
  if (parts.arrivals != nullptr) parts.arrivals->begin(step, waited);
  const BatchTensors batch = source.take();
  const std::int64_t samples_of_all = parts.order.samples_of_all(step);
  // The columns of a text are read from the beginning again.
  if (parts.order.epochs_ended_at(step) > 0) parts.model.set_carried({});
  methods::StepInfo info{step, parts.schedule.at(state_.epoch())};
  info.epoch = state_.epoch();
  step_->run(batch, samples_of_all, info, records_.sums(), waited);
  outcome.samples_now += samples_of_all * parts.train.labels_per_sample();
  ++state_.done;
  ++outcome.steps_now;
  if (outcome.steps_now == 1) {
    outcome.first_step_seconds = seconds_between(state_.start, Clock::now());
  }
  parts.outlets.progress->step(state_.done);
}

// What is due after this many steps; after the last one finish() evaluates and saves.
void Trainer::after_step() {
  const bool last = state_.done >= state_.options.total_steps;
  const Step every = state_.options.checkpoint_every_steps;
  const bool evaluation = !last && evaluation_.due();
  const bool checkpoint =
      !last &&
      (every > 0 ? state_.done % every == 0 : state_.parts.order.epochs_ended_at(state_.done) > 0);
  if (records_.due()) records_.record();
  if (evaluation && !evaluate()) state_.stopping = true;
  if (checkpoint) save(RunCheckpoints::Occasion::kOnTheWay);
}

void Trainer::dump_if_due() {
  const TrainerOptions& options = state_.options;
  if (state_.parts.outlets.dumps == nullptr || options.dump_every_steps == 0) return;
  const Step index = state_.done - 1;
  const Step per_epoch = state_.parts.order.steps_per_epoch();
  if (index % per_epoch % options.dump_every_steps != 0) return;
  storage::DumpName name;
  name.worker = options.step.rank;
  name.epoch = options.start_epoch + index / per_epoch;
  name.batch = index % per_epoch;
  state_.parts.outlets.dumps->write(name, copy_model(state_.parts.replica));
}

bool Trainer::evaluate() {
  if (!evaluation_.pending()) return true;
  records_.record();
  if (!evaluation_.run()) return false;
  if (state_.best_unsaved) save(RunCheckpoints::Occasion::kOnTheWay);
  return true;
}

void Trainer::save(RunCheckpoints::Occasion occasion) {
  records_.record();
  if (checkpoints_.pending()) checkpoints_.save(occasion);
}

// After the last step.
void Trainer::finish() {
  TrainerParts& parts = state_.parts;
  TrainingOutcome& outcome = state_.outcome;
  state_.traffic.turn_to(TrafficPurpose::kFinish, TrafficBook::Messages::kForPurpose);
  const auto early = [&] { return state_.stopping && state_.done < state_.options.total_steps; };
  parts.method.finish(parts.replica,
                      early() ? methods::Ending::kInterrupted : methods::Ending::kComplete);
  state_.materialize();
  bool interrupted = early();
  // A person who pressed Ctrl-C waits for the checkpoint, not for an evaluation.
  const bool evaluates = !state_.options.due.evaluate || evaluation_.due();
  if (!interrupted && evaluates) interrupted = !evaluate();
  if (evaluation_.target_reached()) outcome.reason = StopReason::kTargetReached;
  if (interrupted) outcome.reason = StopReason::kInterrupted;
  if (parts.server_log != nullptr && outcome.reason == StopReason::kFinished) {
    outcome.missing = parts.server_log->missing();
  }
  save(RunCheckpoints::Occasion::kLast);
  outcome.steps = state_.done;
  outcome.epochs = state_.epoch();
  outcome.seconds = state_.now();
  records_.finish();
  state_.event(interrupted ? "interrupt" : "finish", fmt::format("after {} steps", state_.done));
  parts.outlets.metrics->flush();
  parts.outlets.progress->end();
}

}  // namespace cohort::engine
