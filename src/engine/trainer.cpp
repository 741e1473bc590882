#include "engine/trainer.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/clock.h"
#include "core/error.h"
#include "core/failpoint.h"
#include "data/text.h"
#include "engine/averaged_model.h"
#include "engine/carried_state.h"
#include "engine/checkpointing.h"
#include "methods/server_log.h"

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

}  // namespace

Trainer::Trainer(const TrainerParts& parts, const TrainerOptions& options)
    : parts_(parts),
      options_(options),
      start_(Clock::now()),
      watch_({.classes = options.watched_classes,
              .may_drift = options.may_drift,
              .steps_per_epoch = parts.order.steps_per_epoch(),
              .total_steps = options.total_steps}),
      traffic_(parts.traffic, parts.message_traffic) {
  outcome_.text = as_text(parts_.train) != nullptr;
}

double Trainer::epoch_at(Step step) const { return parts_.order.epochs_at(step); }

double Trainer::now() const { return earlier_seconds_ + seconds_between(start_, Clock::now()); }

void Trainer::resume(const LoadedCheckpoint& checkpoint) {
  if (options_.save_each && !parts_.group.alone()) {
    restore_model(checkpoint.model, (checkpoint.folder / "model.safetensors").string(),
                  parts_.replica);
    states_ = states_from(checkpoint, parts_.group.size());
  } else {
    if (options_.save_each) require_no_states(checkpoint);
    restore(checkpoint, parts_.replica, parts_.method);
  }
  carried_ = carried_of(checkpoint);
  if (!checkpoint.extra.contains("engine")) {
    throw FileError(checkpoint.folder.string() + ": its manifest lacks the engine's state");
  }
  resume_at(checkpoint.step, checkpoint.extra.at("engine"), checkpoint.folder.string());
}

void Trainer::resume_at(Step step, const nlohmann::json& engine, const std::string& source) {
  done_ = step;
  recorded_ = done_;
  saved_ = done_;
  try {
    earlier_seconds_ = engine.at("seconds");
    evaluated_ = engine.at("evaluated_step");
    if (parts_.server_log != nullptr) {
      parts_.server_log->resume_with(
          engine.value("pushes_of_workers", std::vector<std::uint64_t>()));
    }
    if (engine.contains("last")) outcome_.last = evaluation_from(engine.at("last"));
    if (engine.contains("best")) {
      outcome_.best = evaluation_from(engine.at("best"));
      outcome_.best_step = engine.at("best_step");
    }
  } catch (const nlohmann::json::exception& error) {
    throw FileError(source + ": its manifest lacks the engine's state: " + error.what());
  }
}

nlohmann::json Trainer::engine_state() const {
  const OrderStart place = parts_.order.place_at(done_);
  const OrderStart& start = parts_.order.start();
  nlohmann::json state = {{"seconds", now()},
                          {"epoch", epoch_at(done_)},
                          {"evaluated_step", evaluated_},
                          {"order",
                           {{"batch_of_all", parts_.order.batch_of_all()},
                            {"workers", parts_.group.size()},
                            {"started_at", {start.step, start.epoch, start.position}},
                            {"stands_at", {place.step, place.epoch, place.position}}}}};
  if (parts_.outlets.metrics_bytes) state["metrics_bytes"] = parts_.outlets.metrics_bytes();
  if (parts_.server_log != nullptr && !parts_.server_log->pushes().empty()) {
    state["pushes_of_workers"] = parts_.server_log->pushes();
  }
  if (outcome_.last) state["last"] = to_json(*outcome_.last);
  if (outcome_.best) {
    state["best"] = to_json(*outcome_.best);
    state["best_step"] = outcome_.best_step;
  }
  return state;
}

bool Trainer::finished() const {
  return parts_.server_log != nullptr && parts_.server_log->finished();
}

bool Trainer::evaluates_now() const {
  if (options_.evaluate_when) return options_.evaluate_when(done_);
  const std::int64_t epochs = parts_.order.epochs_ended_at(done_);
  return options_.eval_every_epochs > 0 && epochs > 0 && epochs % options_.eval_every_epochs == 0;
}

bool Trainer::target_reached() const {
  return options_.target_accuracy > 0 && outcome_.last &&
         outcome_.last->top1 >= options_.target_accuracy;
}

TrainingOutcome Trainer::run(const std::atomic<bool>& stop) {
  start_ = Clock::now();
  options_.evaluation.stop = &stop;
  options_.evaluation.progress = [this](double share) {
    parts_.outlets.progress->evaluating(share);
  };
  parts_.method.start(parts_.replica);  // a worker that servers refuse records nothing
  if (parts_.server_log != nullptr && parts_.server_log->first_step()) {
    go_to(*parts_.server_log->first_step());
  }
  event(done_ == 0 ? "start" : "resume", fmt::format("from step {}", done_));
  if (options_.enters) {
    enter();
  } else {
    if (done_ > 0) restore_workers();
    if (outcome_.text) share_carried(std::exchange(carried_, {}), parts_.model, parts_.group);
    clock_offsets_ = parts_.group.clock_offsets();
    next_agreement_ = (done_ / options_.agree_every_steps + 1) * options_.agree_every_steps;
  }
  begin_progress();
  try {
    train_until_done(stop);
  } catch (...) {
    parts_.outlets.progress->end();  // leaves the terminal in order
    throw;
  }
  if (!parts_.group.alone()) {
    // The last exchange is of the steps.
    const StopWatch watch(times_.exchange_seconds);
    parts_.method.drain(parts_.replica);
  }
  record_steps();
  traffic_.turn_to(TrafficPurpose::kFinish, TrafficBook::Messages::kForPurpose);
  const bool early = stopping_ && done_ < options_.total_steps;
  parts_.method.finish(parts_.replica, early ? Ending::kInterrupted : Ending::kComplete);
  materialize();
  bool interrupted = stopping_ && done_ < options_.total_steps;
  // A person who pressed Ctrl-C waits for the checkpoint, not for an evaluation.
  if (!interrupted && (!options_.evaluate_when || evaluates_now())) interrupted = !evaluate_now();
  if (target_reached()) outcome_.reason = StopReason::kTargetReached;
  if (interrupted) outcome_.reason = StopReason::kInterrupted;
  if (parts_.server_log != nullptr && outcome_.reason == StopReason::kFinished) {
    outcome_.missing = parts_.server_log->missing();
  }
  checkpoint_now(Occasion::kLast);
  outcome_.steps = done_;
  outcome_.epochs = epoch_at(done_);
  outcome_.seconds = now();
  const bool tested = outcome_.last && evaluated_ == done_;
  outcome_.warning =
      watch_.verdict_at_end(tested ? std::optional(outcome_.last->loss) : std::nullopt);
  record_traffic(gather_reports(own_report(), parts_.group));
  event(interrupted ? "interrupt" : "finish", fmt::format("after {} steps", done_));
  parts_.outlets.metrics->flush();
  parts_.outlets.progress->end();
  return outcome_;
}

void Trainer::go_to(Step step) {
  step = std::max(step, parts_.order.start().step);
  if (step == done_) return;
  parts_.outlets.progress->note(fmt::format(
      "going on from step {} of this worker, which is where the servers' model stands{}", step,
      done_ > 0 ? fmt::format(", instead of {}", done_) : ""));
  done_ = recorded_ = step;
  saved_ = -1;
  if (evaluated_ > step) evaluated_ = -1;
}

void Trainer::train_until_done(const std::atomic<bool>& stop) {
  Loader loader = make_loader(
      parts_.train, parts_.order,
      {.threads = options_.loader_threads, .first_step = done_, .last_step = options_.total_steps},
      options_.placement.device);
  BatchUploader upload(options_.placement);
  step_.emplace(parts_.model, parts_.replica, parts_.method, options_.step);
  parts_.model.store().set_training(true);
  if (options_.enters) {
    after_step();
  } else {
    stopping_ = parts_.group.any(stop);
  }
  traffic_.turn_to(TrafficPurpose::kSteps);
  while (done_ < options_.total_steps && !stopping_ && !target_reached() && !finished()) {
    try {
      one_step(loader, upload);
    } catch (const InterruptedError&) {
      if (parts_.server_log == nullptr || !stop) throw;
      undo_step();
      stopping_ = true;
      break;
    }
    if (done_ >= next_agreement_) {
      agree(stop);
    } else if (stop && !stop_noted_ && options_.agree_every_seconds == 0) {
      parts_.outlets.progress->note("stopping at the next average of the models, at step " +
                                    std::to_string(next_agreement_));
      stop_noted_ = true;
    }
    dump_if_due();
    after_step();
  }
}

// What is due after this many steps.
void Trainer::after_step() {
  const std::int64_t epochs = parts_.order.epochs_ended_at(done_);
  // After the last step run() does both, once the method has finished.
  const bool last = done_ >= options_.total_steps;
  const bool evaluation = !last && evaluates_now();
  const bool checkpoint =
      !last && (options_.checkpoint_every_steps > 0 ? done_ % options_.checkpoint_every_steps == 0
                                                    : epochs > 0);
  const bool record =
      options_.record_when ? options_.record_when(done_) : done_ % options_.record_every_steps == 0;
  if (record) record_steps();
  if (evaluation && !evaluate_now()) stopping_ = true;
  if (checkpoint) checkpoint_now();
}

void Trainer::one_step(Loader& loader, BatchUploader& upload) {
  parts_.group.doing(done_, Phase::kLoading);
  const Clock::time_point asked = Clock::now();
  COHORT_FAILPOINT("training.load.rank" + std::to_string(options_.step.rank));
  const LoadedBatch loaded = loader.next();
  const double waited = seconds_between(asked, Clock::now());
  parts_.group.doing(done_, Phase::kComputing);
  if (parts_.arrivals != nullptr) parts_.arrivals->begin(done_, waited);
  const BatchTensors batch = upload(loaded, parts_.train.shape());
  const std::int64_t samples_of_all = parts_.order.samples_of_all(done_);
  // The columns of a text are read from the beginning again.
  if (parts_.order.epochs_ended_at(done_) > 0) parts_.model.set_carried({});
  StepInfo info{done_, parts_.schedule.at(epoch_at(done_))};
  info.epoch = epoch_at(done_);
  step_->run(batch, samples_of_all, info, sums_, waited);
  outcome_.samples_now += samples_of_all * parts_.train.labels_per_sample();
  ++done_;
  ++outcome_.steps_now;
  if (outcome_.steps_now == 1) outcome_.first_step_seconds = seconds_between(start_, Clock::now());
  parts_.outlets.progress->step(done_);
}

void Trainer::materialize() {
  parts_.method.materialize(parts_.replica);
  undo_step();
}

// A gradient that the method has taken back makes no step.
void Trainer::undo_step() {
  if (parts_.server_log == nullptr || !parts_.server_log->take_undone()) return;
  --done_;
  stopping_ = true;
}

void Trainer::dump_if_due() {
  if (parts_.outlets.dumps == nullptr || options_.dump_every_steps == 0) return;
  const Step index = done_ - 1;
  const Step per_epoch = parts_.order.steps_per_epoch();
  if (index % per_epoch % options_.dump_every_steps != 0) return;
  DumpName name;
  name.worker = options_.step.rank;
  name.epoch = options_.start_epoch + index / per_epoch;
  name.batch = index % per_epoch;
  parts_.outlets.dumps->write(name, copy_model(parts_.replica));
}

bool Trainer::evaluate_now() {
  if (parts_.test == nullptr || evaluated_ == done_) return true;
  record_steps();
  const PauseClock::Scope pause(parts_.pauses);
  const TrafficBook::Scope scope(traffic_, TrafficPurpose::kEvaluation);
  parts_.group.doing(done_, Phase::kEvaluating);
  materialize();
  std::optional<AveragedModel> average;
  if (options_.average_models && !parts_.group.alone()) {
    if (options_.evaluate_each) evaluate_each();
    average.emplace(parts_.replica, parts_.group);
  }
  parts_.replica.refresh_copies();
  const auto complete = try_evaluate(parts_.model, *parts_.test, options_.evaluation, parts_.group);
  if (!complete) return false;
  const Evaluation& result = *complete;
  outcome_.evaluation_seconds += result.seconds;
  outcome_.last = result;
  const bool better = !outcome_.best || (outcome_.text ? result.loss < outcome_.best->loss
                                                       : result.top1 > outcome_.best->top1);
  if (better) {
    outcome_.best = result;
    outcome_.best_step = done_;
    best_unsaved_ = true;
  }
  evaluated_ = done_;
  leads_now();
  EvaluationRecord record{now(),          options_.step.rank, done_,       epoch_at(done_),
                          options_.split, result.loss,        result.top1, result.top5,
                          result.samples, result.seconds};
  if (average) record.consensus_distance = average->consensus_distance();
  average.reset();
  parts_.outlets.metrics->record(record);
  parts_.outlets.progress->evaluated(record);
  if (best_unsaved_) checkpoint_now();
  return true;
}

// Every worker's own model on the whole set.
void Trainer::evaluate_each() {
  parts_.replica.refresh_copies();
  std::string text;  // nothing of one that was stopped
  if (const auto own = try_evaluate(parts_.model, *parts_.test, options_.evaluation)) {
    text.assign(reinterpret_cast<const char*>(&*own), sizeof *own);
  }
  const std::vector<std::string> all = parts_.group.gather(text);
  if (!leads_now()) return;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;  // it is lost, or was stopped
    static_assert(std::is_trivially_copyable_v<Evaluation>);
    Evaluation theirs;
    if (all[rank].size() != sizeof theirs) throw PeerError("a worker sent no evaluation");
    std::memcpy(&theirs, all[rank].data(), sizeof theirs);
    const EvaluationRecord record{now(),          static_cast<Rank>(rank),
                                  done_,          epoch_at(done_),
                                  "worker",       theirs.loss,
                                  theirs.top1,    theirs.top5,
                                  theirs.samples, theirs.seconds};
    parts_.outlets.metrics->record(record);
    parts_.outlets.progress->evaluated(record);
  }
}

std::vector<WorkerState> Trainer::gather_workers() {
  const TrafficBook::Scope scope(traffic_, TrafficPurpose::kCheckpoint,
                                 TrafficBook::Messages::kForPurpose);
  const WorkerState for_lost =
      parts_.group.is_first() ? pack_newcomer(parts_.replica, parts_.method) : WorkerState{};
  return gather_states(pack_worker(parts_.replica, parts_.method), for_lost, *parts_.messages,
                       parts_.group.leader(), deadline_in(options_.patience));
}

void Trainer::restore_workers() {
  if (!options_.save_each || parts_.group.alone()) return;
  const TrafficBook::Scope scope(traffic_, TrafficPurpose::kStart,
                                 TrafficBook::Messages::kForPurpose);
  unpack_worker(
      scatter_states(std::move(states_), *parts_.messages, deadline_in(options_.patience)),
      parts_.replica, parts_.method, done_);
}

void Trainer::checkpoint_now(Occasion occasion) {
  record_steps();
  const PauseClock::Scope pause(parts_.outlets.checkpoints != nullptr ? parts_.pauses : nullptr);
  const TrafficBook::Scope scope(traffic_, TrafficPurpose::kCheckpoint);
  const bool best = best_unsaved_ && outcome_.best_step == done_;
  // What was saved before it was evaluated is saved again when it turns out to be the best.
  if (!options_.save_checkpoints || (saved_ == done_ && !best)) return;
  parts_.group.doing(done_, Phase::kSaving);
  materialize();
  // Where who writes is lost meanwhile, the next one begins anew.
  Rank writer = parts_.group.leader();
  bool saved = checkpoint_once(best, occasion);
  while (parts_.group.leader() != writer) {
    writer = parts_.group.leader();
    saved = checkpoint_once(best, occasion);
  }
  if (!saved) return;
  saved_ = done_;
  if (best) best_unsaved_ = false;
}

bool Trainer::checkpoint_once(bool best, Occasion occasion) {
  const bool writes = leads_now() && parts_.outlets.checkpoints != nullptr;
  std::optional<AveragedModel> average;
  if (options_.save_each && !parts_.group.alone()) states_ = gather_workers();
  if (options_.average_models && !parts_.group.alone()) {
    average.emplace(parts_.replica, parts_.group);
  }
  if (outcome_.text && parts_.order.epochs_ended_at(done_) == 0) {
    carried_ = gather_carried(parts_.model, parts_.group);
  }
  const bool failed = writes && !save(best, occasion);
  states_.clear();
  carried_.reset();
  average.reset();
  // Whether there is one decides what everybody does next.
  return !parts_.group.any(failed);
}

bool Trainer::save(bool best, Occasion occasion) {
  const StopWatch watch(outcome_.checkpoint_seconds);
  try {
    if (parts_.outlets.keep_folder) parts_.outlets.keep_folder();
    event("checkpoint", best ? "best so far" : "");
    parts_.outlets.metrics->flush();
    std::optional<Snapshot> snapshot;
    if (states_.empty()) {
      snapshot.emplace(parts_.replica, parts_.method, done_, engine_state());
    } else {
      snapshot.emplace(parts_.replica, states_, done_, engine_state());
    }
    snapshot->add_carried(carried_);
    parts_.outlets.checkpoints->save(snapshot->contents(), best);
    return true;
  } catch (const FileError& error) {
    // A full disk costs a checkpoint, not the training: the next one may succeed. At the end there
    // is no next one.
    if (occasion == Occasion::kLast || done_ >= options_.total_steps) throw;
    parts_.outlets.progress->note(std::string("warning: no checkpoint at step ") +
                                  std::to_string(done_) +
                                  ", earlier ones are kept: " + error.what());
    try {
      event("checkpoint-failed", error.what());
    } catch (const FileError&) {  // the same full disk; it has been said above
    }
    return false;
  }
}

void Trainer::event(const char* name, const std::string& detail) {
  parts_.outlets.metrics->record(EventRecord{now(), options_.step.rank, done_, name, detail});
}

}  // namespace cohort
