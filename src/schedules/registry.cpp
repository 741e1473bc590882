#include <algorithm>
#include <cmath>
#include <numbers>

#include "schedules/learning_rate.h"

namespace cohort {
namespace {

// A schedule that is one formula over its options.
template <double (*kFormula)(const ScheduleOptions&, double)>
class Formula final : public LearningRate {
 public:
  explicit Formula(const ScheduleOptions& options) : options_(options) {}
  double at(double epoch) const override { return kFormula(options_, epoch); }

 private:
  ScheduleOptions options_;
};

template <double (*kFormula)(const ScheduleOptions&, double)>
std::unique_ptr<LearningRate> make(const ScheduleOptions& options) {
  return std::make_unique<Formula<kFormula>>(options);
}

// Share of the run that is over, at most 1.
double progress(const ScheduleOptions& options, double epoch) {
  return std::min(1.0, epoch / options.total_epochs);
}

// From `high` at 0 to `low` at 1 along half a cosine.
double half_cosine(double high, double low, double share) {
  return low + (high - low) * (1.0 + std::cos(std::numbers::pi * share)) / 2.0;
}

double constant(const ScheduleOptions& options, double) { return options.lr; }

double step(const ScheduleOptions& options, double epoch) {
  return options.lr * std::pow(options.gamma, std::floor(epoch / options.step_size));
}

std::size_t passed(const std::vector<double>& milestones, double epoch) {
  return static_cast<std::size_t>(std::upper_bound(milestones.begin(), milestones.end(), epoch) -
                                  milestones.begin());
}

double multi_step(const ScheduleOptions& options, double epoch) {
  return options.lr *
         std::pow(options.gamma, static_cast<double>(passed(options.milestones, epoch)));
}

double piecewise(const ScheduleOptions& options, double epoch) {
  return options.values[passed(options.milestones, epoch)];
}

double cosine(const ScheduleOptions& options, double epoch) {
  return half_cosine(options.lr, options.min_lr, progress(options, epoch));
}

double polynomial(const ScheduleOptions& options, double epoch) {
  return options.min_lr +
         (options.lr - options.min_lr) * std::pow(1.0 - progress(options, epoch), options.power);
}

// Smith, Topin 2018, with the cosine legs of PyTorch's OneCycleLR.
double one_cycle(const ScheduleOptions& options, double epoch) {
  const double start = options.lr / options.start_factor;
  const double share = progress(options, epoch);
  if (share < options.peak_at) return half_cosine(start, options.lr, share / options.peak_at);
  return half_cosine(options.lr, start / options.end_factor,
                     (share - options.peak_at) / (1.0 - options.peak_at));
}

void require(bool condition, const char* message) {
  if (!condition) throw ConfigError(message);
}

void require_milestones(const ScheduleOptions& options) {
  require(!options.milestones.empty(),
          "this schedule needs --lr-milestones: ascending epochs, e.g. 30,60,80");
  require(std::is_sorted(options.milestones.begin(), options.milestones.end()) &&
              options.milestones.front() >= 0,
          "--lr-milestones must be ascending epochs from 0 up");
}

std::unique_ptr<LearningRate> make_step(const ScheduleOptions& options) {
  require(options.step_size > 0, "--lr-step-size must be above 0 epochs");
  return make<step>(options);
}

std::unique_ptr<LearningRate> make_multi_step(const ScheduleOptions& options) {
  require_milestones(options);
  return make<multi_step>(options);
}

std::unique_ptr<LearningRate> make_piecewise(const ScheduleOptions& options) {
  require_milestones(options);
  require(options.values.size() == options.milestones.size() + 1,
          "--lr-values needs one rate more than --lr-milestones has epochs");
  return make<piecewise>(options);
}

std::unique_ptr<LearningRate> make_one_cycle(const ScheduleOptions& options) {
  require(options.peak_at > 0 && options.peak_at < 1, "--lr-peak-at must be between 0 and 1");
  require(options.start_factor > 0 && options.end_factor > 0,
          "--lr-start-factor and --lr-end-factor must be above 0");
  return make<one_cycle>(options);
}

}  // namespace

const ScheduleRegistry& schedules() {
  static const ScheduleRegistry registry(
      "schedule",
      {
          {"constant", "the same rate throughout", make<constant>},
          {"step", "times --lr-gamma every --lr-step-size epochs", make_step},
          {"multi-step", "times --lr-gamma at each of --lr-milestones", make_multi_step},
          {"piecewise", "the rates --lr-values between --lr-milestones", make_piecewise},
          {"cosine", "half a cosine down to --lr-min", make<cosine>},
          {"polynomial", "(1 - progress)^--lr-power down to --lr-min", make<polynomial>},
          {"one-cycle", "up to --lr and down far below its start", make_one_cycle},
      });
  return registry;
}

}  // namespace cohort
