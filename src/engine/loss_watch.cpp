#include "engine/loss_watch.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace cohort::engine {
namespace {

constexpr double kFarAbove = 4;
constexpr double kAsGoodAs = 0.99;
constexpr double kAsBadAs = 1.02;
constexpr Step kBlock = 100;  // steps over which a mean is taken: one batch says little
constexpr Step kLeastPatience = 300;
// Networks of many classes begin slowly, and an epoch of theirs is long.
constexpr Step kMaxPatience = 2000;

constexpr const char* kWhatToLower =
    "lower --lr, lower --consensus-stepsize where the method has one, or send more (a finer "
    "--compressor), or use --method choco";

double guessing_loss(std::size_t classes) {
  return std::log(std::max(2.0, static_cast<double>(classes)));
}

}  // namespace

double far_above_guessing(std::size_t classes) { return kFarAbove * guessing_loss(classes); }

double divergence_limit(double above_guessing, double first_loss) {
  constexpr double kHopeless = 10;
  return std::clamp(kFarAbove * first_loss, above_guessing, kHopeless * above_guessing);
}

LossWatch::LossWatch(const LossWatchOptions& options)
    : options_(options),
      patience_(std::clamp(std::min(options.steps_per_epoch, options.total_steps / 2),
                           kLeastPatience, kMaxPatience)) {}

std::string LossWatch::add(double loss, std::int64_t samples, Step steps) {
  if (options_.classes == 0 || samples == 0) return "";
  if (options_.may_drift) check_divergence(loss / static_cast<double>(samples), steps);
  watched_ += steps;
  block_loss_ += loss;
  block_samples_ += samples;
  block_steps_ += steps;
  if (block_steps_ < kBlock) return "";
  const double mean = block_loss_ / static_cast<double>(block_samples_);
  const bool guesses = mean >= kAsGoodAs * guessing_loss(options_.classes);
  guessing_ = guesses ? guessing_ + block_steps_ : 0;
  block_loss_ = 0;
  block_samples_ = 0;
  block_steps_ = 0;
  if (warned_ || guessing_ < patience_) return "";
  warned_ = true;
  return verdict();
}

std::string LossWatch::verdict() const {
  if (guessing_ < patience_) return "";
  return advice(fmt::format("in the last {} steps the training loss was", guessing_));
}

std::string LossWatch::verdict_at_end(std::optional<double> test_loss) const {
  std::string of_training = verdict();
  const bool long_enough = watched_ >= std::clamp(options_.steps_per_epoch, kBlock, kLeastPatience);
  // Far above it is a network that has learned the training set by heart.
  const double of_guessing = guessing_loss(options_.classes);
  const bool guesses = options_.classes > 0 && test_loss && *test_loss >= kAsGoodAs * of_guessing &&
                       *test_loss <= kAsBadAs * of_guessing;
  if (!of_training.empty() || !long_enough || !guesses) return of_training;
  return advice(fmt::format("after {} steps the test loss ({:.3f}) is", watched_, *test_loss));
}

std::string LossWatch::advice(const std::string& finding) const {
  return fmt::format("{} no better than that of guessing ({:.3f}): nothing is learned; {}", finding,
                     guessing_loss(options_.classes),
                     options_.may_drift ? kWhatToLower
                                        : "try a lower --lr, a lower --momentum or "
                                          "--warmup-epochs, and look at the labels");
}

void LossWatch::check_divergence(double mean, Step steps) {
  if (first_loss_ == 0) first_loss_ = mean;
  if (mean <= divergence_limit(far_above_guessing(options_.classes), first_loss_)) return;
  throw RunError(
      fmt::format("training diverged: the mean loss of the last {} steps is {:.4g}, far above that "
                  "of guessing; {}",
                  steps, mean, kWhatToLower));
}

}  // namespace cohort::engine
