#include "schedules/learning_rate.h"

#include <cmath>
#include <utility>

namespace cohort::schedules {
namespace {

class Warmup final : public LearningRate {
 public:
  Warmup(std::unique_ptr<LearningRate> schedule, double from, double epochs)
      : schedule_(std::move(schedule)), from_(from), epochs_(epochs) {}

  double at(double epoch) const override {
    const double target = schedule_->at(epoch);
    if (epoch >= epochs_) return target;
    return from_ + (target - from_) * epoch / epochs_;
  }

 private:
  std::unique_ptr<LearningRate> schedule_;
  double from_;
  double epochs_;
};

}  // namespace

std::unique_ptr<LearningRate> with_warmup(std::unique_ptr<LearningRate> schedule, double from,
                                          double epochs) {
  if (epochs < 0) throw ConfigError("--warmup-epochs must not be negative");
  if (from < 0) throw ConfigError("--warmup-from must not be negative");
  return std::make_unique<Warmup>(std::move(schedule), from, epochs);
}

LrScaling parse_lr_scaling(const std::string& name) {
  const std::vector<std::string> known = {"none", "linear", "sqrt"};
  if (name == "none") return LrScaling::kNone;
  if (name == "linear") return LrScaling::kLinear;
  if (name == "sqrt") return LrScaling::kSqrt;
  throw ConfigError(unknown_name("learning-rate scaling", name, known));
}

double scaled_lr(double lr, LrScaling scaling, double batch, double base_batch) {
  if (scaling == LrScaling::kNone) return lr;
  if (!(base_batch > 0)) {
    throw ConfigError("--lr-scaling needs --base-batch: the batch that --lr was tuned for");
  }
  const double ratio = batch / base_batch;
  return lr * (scaling == LrScaling::kLinear ? ratio : std::sqrt(ratio));
}

}  // namespace cohort::schedules
