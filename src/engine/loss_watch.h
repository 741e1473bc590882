// Watches the training loss for a model that has lost what it learned, or learns nothing.
//
// A classifier that guesses has the loss log(classes). A loss far above it is divergence: an error
// where workers may drift apart, whose models lose everything long before a number overflows. A
// loss that stays there for long is a warning, given once: workers that pull each other to nothing,
// or a rate that has killed all units, guess for ever and look healthy otherwise. It is no error,
// because of some data nothing can be learned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/types.h"

namespace cohort::engine {

// The limit for a classifier that has not said yet how it begins.
double far_above_guessing(std::size_t classes);

// `above_guessing` as above. Some models begin worse than by guessing, so the first loss counts
// too, unless it is hopeless itself.
double divergence_limit(double above_guessing, double first_loss);

struct LossWatchOptions {
  std::size_t classes = 0;  // 0: nothing is watched
  bool may_drift = false;   // far above guessing is an error
  Step steps_per_epoch = 0;
  Step total_steps = 0;
};

class LossWatch {
 public:
  explicit LossWatch(const LossWatchOptions& options);

  // The loss summed over the samples of some more steps of all workers. Returns the warning if it
  // is to be given now, else nothing. Throws RunError on divergence.
  std::string add(double loss, std::int64_t samples, Step steps);

  // The warning if it still holds, else nothing. At the end: also where the loss on all of the test
  // set, if that was measured after all steps, is that of guessing.
  std::string verdict() const;
  std::string verdict_at_end(std::optional<double> test_loss) const;

  // The mean loss of the first steps, for one who takes part later; 0: none yet.
  double first_loss() const { return first_loss_; }
  void begin_from(double first_loss) { first_loss_ = first_loss; }

 private:
  void check_divergence(double mean, Step steps);
  std::string advice(const std::string& finding) const;

  LossWatchOptions options_;
  Step patience_;          // steps of guessing before it is said
  double first_loss_ = 0;  // the mean over the first record; 0: none yet
  double block_loss_ = 0;  // summed over the latest steps, too few yet to judge
  std::int64_t block_samples_ = 0;
  Step block_steps_ = 0;
  Step guessing_ = 0;  // steps in a row
  Step watched_ = 0;   // steps in all
  bool warned_ = false;
};

}  // namespace cohort::engine
