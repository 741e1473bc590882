// What a person sees while a run goes on.
//
// Called from the training thread between steps; must be quick.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "core/clock.h"
#include "core/types.h"
#include "engine/evaluator.h"
#include "metrics/run_totals.h"

namespace cohort::engine {

struct ProgressPlan {
  Step total_steps = 0;
  Step steps_per_epoch = 1;
  double first_epoch = 0;   // epochs behind the first step, when the run goes on
  Step earlier_epochs = 0;  // of --start-epoch
  bool text = false;        // samples are words: perplexities are shown
  Step evaluate_every = 0;  // steps between evaluations; 0: only at the end
  bool evaluates = true;
};

class Progress {
 public:
  virtual ~Progress() = default;
  virtual void begin(const ProgressPlan& plan, Step first_step) = 0;
  virtual void step(Step done) = 0;  // after every step
  // After every record, when all workers that record together have done so; with several one call
  // for each, one after another.
  virtual void recorded(const metrics::StepRecord& record) = 0;
  // While an evaluation goes on: the share that is done. The older systems showed nothing then.
  virtual void evaluating(double) {}
  virtual void evaluated(const metrics::EvaluationRecord& record) = 0;
  virtual void note(const std::string& line) = 0;  // something worth a line
  virtual void end() = 0;
};

// Both show how all workers whose records come to `totals` train together; it outlives them.
// A bar that redraws itself, for a terminal.
std::unique_ptr<Progress> make_progress_bar(std::FILE* out, const metrics::TotalsSink& totals);
// One line for each evaluation, and now and then one in between, for pipes and files.
std::unique_ptr<Progress> make_plain_progress(std::FILE* out, const metrics::TotalsSink& totals);
// Notes only, which may be warnings.
std::unique_ptr<Progress> make_quiet_progress(std::FILE* out);
// Nothing at all, for workers whose progress another one shows.
std::unique_ptr<Progress> make_silent_progress();

}  // namespace cohort::engine
