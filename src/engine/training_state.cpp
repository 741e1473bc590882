#include "engine/training_state.h"

#include <utility>

#include "data/text.h"
#include "methods/server_log.h"

namespace cohort::engine {

TrainingState::TrainingState(const TrainerParts& given, const TrainerOptions& chosen)
    : parts(given),
      options(chosen),
      exchange(dynamic_cast<methods::OverlappedExchange*>(&parts.method)),
      elastic(dynamic_cast<methods::ElasticMethod*>(&parts.method)),
      traffic(given.traffic, given.message_traffic),
      start(Clock::now()) {
  outcome.text = data::as_text(parts.train) != nullptr;
}

bool TrainingState::leads() {
  if (!parts.group.is_first()) return false;
  if (parts.take_over) {
    parts.outlets = std::exchange(parts.take_over, nullptr)();
    begin_progress();
    event("leads", "rank " + std::to_string(parts.group.rank()));
  }
  return true;
}

void TrainingState::begin_progress() {
  const Step per_epoch = parts.order.steps_per_epoch();
  parts.outlets.progress->begin(
      {.total_steps = options.total_steps,
       .steps_per_epoch = per_epoch,
       .first_epoch = epoch(),
       .earlier_epochs = options.start_epoch,
       .text = outcome.text,
       .evaluate_every = options.due.evaluate ? 0 : options.eval_every_epochs * per_epoch,
       .evaluates = parts.test != nullptr},
      done);
}

void TrainingState::event(const char* name, const std::string& detail) {
  parts.outlets.metrics->record(metrics::EventRecord{now(), options.step.rank, done, name, detail});
}

void TrainingState::drain() {
  if (parts.group.alone() || exchange == nullptr) return;
  const StopWatch watch(times.exchange_seconds);
  exchange->drain(parts.replica);
}

void TrainingState::materialize() {
  parts.method.materialize(parts.replica);
  undo_step();
}

void TrainingState::undo_step() {
  if (parts.server_log == nullptr || !parts.server_log->take_undone()) return;
  --done;
  stopping = true;
}

}  // namespace cohort::engine
