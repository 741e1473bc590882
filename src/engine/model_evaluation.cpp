#include "engine/model_evaluation.h"

#include <cstring>
#include <optional>
#include <type_traits>

#include "core/error.h"
#include "engine/averaged_model.h"

namespace cohort::engine {
namespace {

metrics::EvaluationRecord record_of(const Evaluation& result, const TrainingState& state, Rank rank,
                                    const std::string& split) {
  return {state.now(), rank,        state.done,  state.epoch(),  split,
          result.loss, result.top1, result.top5, result.samples, result.seconds};
}

}  // namespace

bool ModelEvaluation::due() const {
  const TrainerOptions& options = state_.options;
  if (options.due.evaluate) return options.due.evaluate(state_.done);
  const std::int64_t epochs = state_.parts.order.epochs_ended_at(state_.done);
  return options.eval_every_epochs > 0 && epochs > 0 && epochs % options.eval_every_epochs == 0;
}

bool ModelEvaluation::target_reached() const {
  return state_.options.target_accuracy > 0 && state_.outcome.last &&
         state_.outcome.last->top1 >= state_.options.target_accuracy;
}

bool ModelEvaluation::run() {
  TrainerParts& parts = state_.parts;
  const PauseClock::Scope pause(parts.pauses);
  const TrafficBook::Scope scope(state_.traffic, TrafficPurpose::kEvaluation);
  parts.group.doing(state_.done, Phase::kEvaluating);
  state_.materialize();
  std::optional<AveragedModel> average;
  if (state_.averages()) {
    if (state_.options.evaluate_each) run_each();
    average.emplace(parts.replica, parts.group);
  }
  parts.replica.refresh_copies();
  const auto result =
      try_evaluate(parts.model, *parts.test, state_.options.evaluation, parts.group);
  if (!result) return false;
  note(*result);
  state_.leads();
  metrics::EvaluationRecord record =
      record_of(*result, state_, state_.options.step.rank, state_.options.split);
  if (average) record.consensus_distance = average->consensus_distance();
  parts.outlets.metrics->record(record);
  parts.outlets.progress->evaluated(record);
  return true;
}

void ModelEvaluation::note(const Evaluation& result) {
  TrainingOutcome& outcome = state_.outcome;
  outcome.evaluation_seconds += result.seconds;
  outcome.last = result;
  const bool better = !outcome.best || (outcome.text ? result.loss < outcome.best->loss
                                                     : result.top1 > outcome.best->top1);
  if (better) {
    outcome.best = result;
    outcome.best_step = state_.done;
    state_.best_unsaved = true;
  }
  state_.evaluated = state_.done;
}

// Every worker's own model on the whole set.
void ModelEvaluation::run_each() {
  TrainerParts& parts = state_.parts;
  parts.replica.refresh_copies();
  std::string text;  // nothing of one that was stopped
  if (const auto own = try_evaluate(parts.model, *parts.test, state_.options.evaluation)) {
    text.assign(reinterpret_cast<const char*>(&*own), sizeof *own);
  }
  const std::vector<std::string> all = parts.group.gather(text);
  if (!state_.leads()) return;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;  // it is lost, or was stopped
    static_assert(std::is_trivially_copyable_v<Evaluation>);
    Evaluation theirs;
    if (all[rank].size() != sizeof theirs) throw PeerError("a worker sent no evaluation");
    std::memcpy(&theirs, all[rank].data(), sizeof theirs);
    const metrics::EvaluationRecord record =
        record_of(theirs, state_, static_cast<Rank>(rank), "worker");
    parts.outlets.metrics->record(record);
    parts.outlets.progress->evaluated(record);
  }
}

}  // namespace cohort::engine
