// A run under way, as the parts of its trainer share it: what it trains, how far it is, and to whom
// it is told. Each counter has one part that writes it.
#pragma once

#include <string>
#include <vector>

#include "core/clock.h"
#include "engine/traffic_book.h"
#include "engine/trainer_parts.h"

namespace cohort::engine {

struct TrainingState {
  TrainingState(const TrainerParts& parts, const TrainerOptions& options);

  TrainerParts parts;
  TrainerOptions options;
  methods::OverlappedExchange* exchange;  // the method's; null: it has none
  methods::ElasticMethod* elastic;        // likewise
  TrainingOutcome outcome;
  TrafficBook traffic;
  StepTimes times;             // since the last record
  Step done = 0;               // steps taken in the whole run: the loop's
  Step recorded = 0;           // covered by records: StepRecords'
  Step evaluated = -1;         // when the model was last evaluated: ModelEvaluation's
  Step saved = -1;             // when it was last saved: RunCheckpoints'
  bool best_unsaved = false;   // the newest evaluation is the best so far
  bool stopping = false;       // agreed upon
  double earlier_seconds = 0;  // of earlier sittings
  Clock::time_point start;     // of this one

  // Where a run that goes on stands: everything is recorded and saved there.
  void stand_at(Step step) { done = recorded = saved = step; }
  double now() const { return earlier_seconds + seconds_between(start, Clock::now()); }
  double epoch() const { return parts.order.epochs_at(done); }
  bool averages() const { return options.average_models && !parts.group.alone(); }

  // Whether this worker records for all. Who has just become the leader takes over the outlets.
  bool leads();
  void begin_progress();
  void event(const char* name, const std::string& detail);
  void note(const std::string& line) { parts.outlets.progress->note(line); }

  // Waits for what the method has under way, where there is anybody to wait for.
  void drain();
  void materialize();
  // A gradient that the method has taken back makes no step.
  void undo_step();
};

}  // namespace cohort::engine
