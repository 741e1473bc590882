// The learning rate over a run: a pure function of how far the run is.
//
// Time is counted in epochs, as a fraction: step / steps_per_epoch. Schedules that change between
// epochs only (step, multi-step) compare with whole epochs; the others move with every step.
#pragma once

#include <memory>
#include <vector>

#include "core/registry.h"

namespace cohort::schedules {

class LearningRate {
 public:
  virtual ~LearningRate() = default;

  // The rate to use for the step that begins at `epoch`, 0 <= epoch.
  virtual double at(double epoch) const = 0;
};

struct ScheduleOptions {
  double lr = 0.01;                // the peak: what the schedule starts from, or climbs to
  double total_epochs = 1;         // length of the run, for cosine, polynomial and one-cycle
  double step_size = 30;           // step: epochs between two drops
  double gamma = 0.1;              // step, multi-step, exponential: factor; convex: numerator
  std::vector<double> milestones;  // multi-step, piecewise, fields: ascending epochs
  std::vector<double> values;      // piecewise: one rate more than milestones; fields: two for each
  std::vector<double> shapes;      // fields: FieldShape for each; empty: all linear
  double mu = 1;                   // convex
  double alpha = 1;                // convex
  double min_lr = 0;               // cosine, polynomial: where they end
  double power = 2;                // polynomial
  double start_factor = 25;        // one-cycle: begins at lr / start_factor
  double end_factor = 1e4;         // one-cycle: ends at that beginning / end_factor
  double peak_at = 0.3;            // one-cycle: share of the run until the peak
};

// How the rate goes from the first to the second of a field's two values.
enum class FieldShape {
  kLinear = 0,
  kSquare = 1,  // first * (1 - share)^2: to 0, whatever the second is
  kConvex = 2,  // as the schedule convex, whatever both are
};

using ScheduleRegistry = Registry<LearningRate, const ScheduleOptions&>;
const ScheduleRegistry& schedules();

// `schedule` with a linear climb from `from` to its own value over the first `epochs`.
std::unique_ptr<LearningRate> with_warmup(std::unique_ptr<LearningRate> schedule, double from,
                                          double epochs);

enum class LrScaling { kNone, kLinear, kSqrt };
LrScaling parse_lr_scaling(const std::string& name);

// The rate for `batch` samples a step (all workers together) when `lr` suits `base_batch`:
// linear (Goyal et al. 2017) or square-root (Krizhevsky 2014).
double scaled_lr(double lr, LrScaling scaling, double batch, double base_batch);

}  // namespace cohort::schedules
