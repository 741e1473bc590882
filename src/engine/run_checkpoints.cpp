#include "engine/run_checkpoints.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/error.h"
#include "engine/averaged_model.h"
#include "engine/carried_state.h"
#include "engine/checkpointing.h"
#include "engine/run_directory.h"
#include "methods/server_log.h"
#include "storage/checkpoint_store.h"

namespace cohort::engine {
namespace {

// JSON has no NaN: the loss of a diverged model is null.
nlohmann::json to_json(const Evaluation& evaluation) {
  return {{"loss", std::isfinite(evaluation.loss) ? nlohmann::json(evaluation.loss) : nullptr},
          {"top1", evaluation.top1},
          {"top5", evaluation.top5},
          {"samples", evaluation.samples},
          {"seconds", evaluation.seconds}};
}

Evaluation evaluation_from(const nlohmann::json& saved) {
  const nlohmann::json& loss = saved.at("loss");
  return {loss.is_null() ? std::nan("") : loss.get<double>(), saved.at("top1"), saved.at("top5"),
          saved.at("samples"), saved.at("seconds")};
}

}  // namespace

void RunCheckpoints::resume(const storage::LoadedCheckpoint& checkpoint) {
  const TrainerParts& parts = state_.parts;
  if (state_.options.save_each && !parts.group.alone()) {
    restore_model(checkpoint.model, (checkpoint.folder / "model.safetensors").string(),
                  parts.replica);
    states_ = states_from(checkpoint, parts.group.size());
  } else {
    if (state_.options.save_each) require_no_states(checkpoint);
    restore(checkpoint, parts.replica, parts.method);
  }
  carried_ = carried_of(checkpoint);
  if (!checkpoint.extra.contains("engine")) {
    throw FileError(checkpoint.folder.string() + ": its manifest lacks the engine's state");
  }
  resume_at(checkpoint.step, checkpoint.extra.at("engine"), checkpoint.folder.string());
}

void RunCheckpoints::resume_at(Step step, const nlohmann::json& engine, const std::string& source) {
  state_.stand_at(step);
  try {
    state_.earlier_seconds = engine.at("seconds");
    state_.evaluated = engine.at("evaluated_step");
    if (methods::ServerLog* const log = state_.parts.server_log; log != nullptr) {
      log->resume_with(engine.value("pushes_of_workers", std::vector<std::uint64_t>()));
    }
    TrainingOutcome& outcome = state_.outcome;
    if (engine.contains("last")) outcome.last = evaluation_from(engine.at("last"));
    if (engine.contains("best")) {
      outcome.best = evaluation_from(engine.at("best"));
      outcome.best_step = engine.at("best_step");
    }
  } catch (const nlohmann::json::exception& error) {
    throw FileError(source + ": its manifest lacks the engine's state: " + error.what());
  }
}

nlohmann::json RunCheckpoints::engine_state() const {
  const TrainerParts& parts = state_.parts;
  const data::OrderStart place = parts.order.place_at(state_.done);
  const data::OrderStart& start = parts.order.start();
  nlohmann::json engine = {{"seconds", state_.now()},
                           {"epoch", state_.epoch()},
                           {"evaluated_step", state_.evaluated},
                           {"order",
                            {{"batch_of_all", parts.order.batch_of_all()},
                             {"workers", parts.group.size()},
                             {"started_at", {start.step, start.epoch, start.position}},
                             {"stands_at", {place.step, place.epoch, place.position}}}}};
  if (parts.outlets.run != nullptr) engine["metrics_bytes"] = parts.outlets.run->metrics_bytes();
  if (parts.server_log != nullptr && !parts.server_log->pushes().empty()) {
    engine["pushes_of_workers"] = parts.server_log->pushes();
  }
  const TrainingOutcome& outcome = state_.outcome;
  if (outcome.last) engine["last"] = to_json(*outcome.last);
  if (outcome.best) {
    engine["best"] = to_json(*outcome.best);
    engine["best_step"] = outcome.best_step;
  }
  return engine;
}

void RunCheckpoints::share() {
  if (state_.done > 0) restore_workers();
  if (state_.outcome.text) {
    share_carried(std::exchange(carried_, {}), state_.parts.model, state_.parts.group);
  }
}

void RunCheckpoints::restore_workers() {
  const TrainerParts& parts = state_.parts;
  if (!state_.options.save_each || parts.group.alone()) return;
  const TrafficBook::Scope scope(state_.traffic, TrafficPurpose::kStart,
                                 TrafficBook::Messages::kForPurpose);
  unpack_worker(
      scatter_states(std::move(states_), *parts.messages, deadline_in(state_.options.patience)),
      parts.replica, parts.method, state_.done);
}

std::vector<WorkerState> RunCheckpoints::gather_workers() {
  const TrainerParts& parts = state_.parts;
  const TrafficBook::Scope scope(state_.traffic, TrafficPurpose::kCheckpoint,
                                 TrafficBook::Messages::kForPurpose);
  const WorkerState for_lost =
      parts.group.is_first() ? pack_newcomer(parts.replica, parts.method) : WorkerState{};
  return gather_states(pack_worker(parts.replica, parts.method), for_lost, *parts.messages,
                       parts.group.leader(), deadline_in(state_.options.patience));
}

bool RunCheckpoints::pending() const {
  // What was saved before it was evaluated is saved again when it turns out to be the best.
  return state_.options.save_checkpoints && (state_.saved != state_.done || is_best());
}

void RunCheckpoints::save(Occasion occasion) {
  const TrainerParts& parts = state_.parts;
  const PauseClock::Scope pause(parts.outlets.checkpoints != nullptr ? parts.pauses : nullptr);
  const TrafficBook::Scope scope(state_.traffic, TrafficPurpose::kCheckpoint);
  parts.group.doing(state_.done, Phase::kSaving);
  const bool best = is_best();
  state_.materialize();
  // Where who writes is lost meanwhile, the next one begins anew.
  Rank writer = parts.group.leader();
  bool saved = save_once(best, occasion);
  while (parts.group.leader() != writer) {
    writer = parts.group.leader();
    saved = save_once(best, occasion);
  }
  if (!saved) return;
  state_.saved = state_.done;
  if (best) state_.best_unsaved = false;
}

bool RunCheckpoints::save_once(bool best, Occasion occasion) {
  TrainerParts& parts = state_.parts;
  const bool writes = state_.leads() && parts.outlets.checkpoints != nullptr;
  std::optional<AveragedModel> average;
  if (state_.options.save_each && !parts.group.alone()) states_ = gather_workers();
  if (state_.averages()) average.emplace(parts.replica, parts.group);
  if (state_.outcome.text && parts.order.epochs_ended_at(state_.done) == 0) {
    carried_ = gather_carried(parts.model, parts.group);
  }
  const bool failed = writes && !write(best, occasion);
  states_.clear();
  carried_.reset();
  average.reset();
  // Whether there is one decides what everybody does next.
  return !parts.group.any(failed);
}

bool RunCheckpoints::write(bool best, Occasion occasion) {
  const StopWatch watch(state_.outcome.checkpoint_seconds);
  const TrainerParts& parts = state_.parts;
  try {
    if (parts.outlets.run != nullptr) {
      if (const auto warning = parts.outlets.run->remake_if_gone()) state_.note(*warning);
    }
    state_.event("checkpoint", best ? "best so far" : "");
    parts.outlets.metrics->flush();
    std::optional<Snapshot> snapshot;
    if (states_.empty()) {
      snapshot.emplace(parts.replica, parts.method, state_.done, engine_state());
    } else {
      snapshot.emplace(parts.replica, states_, state_.done, engine_state());
    }
    snapshot->add_carried(carried_);
    parts.outlets.checkpoints->save(snapshot->contents(), best);
    return true;
  } catch (const FileError& error) {
    // A full disk costs a checkpoint, not the training: the next one may succeed. At the end there
    // is no next one.
    if (occasion == Occasion::kLast || state_.done >= state_.options.total_steps) throw;
    state_.note(std::string("warning: no checkpoint at step ") + std::to_string(state_.done) +
                ", earlier ones are kept: " + error.what());
    try {
      state_.event("checkpoint-failed", error.what());
    } catch (const FileError&) {  // the same full disk; it has been said above
    }
    return false;
  }
}

}  // namespace cohort::engine
