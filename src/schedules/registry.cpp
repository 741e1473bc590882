#include <algorithm>
#include <cmath>
#include <numbers>

#include "schedules/learning_rate.h"

namespace cohort::schedules {
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

double exponential(const ScheduleOptions& options, double epoch) {
  return options.lr * std::pow(options.gamma, epoch);
}

// What the analysis of SGD for strongly convex functions asks for.
double convex(const ScheduleOptions& options, double epoch) {
  return options.gamma / (options.mu * (options.alpha + epoch));
}

// Where field `index` ends: the last may leave that to the run.
double field_end(const ScheduleOptions& options, std::size_t index) {
  return index < options.milestones.size() ? options.milestones[index] : options.total_epochs;
}

double fields(const ScheduleOptions& options, double epoch) {
  const std::size_t last = options.values.size() / 2 - 1;
  const std::size_t index = std::min(passed(options.milestones, epoch), last);
  const double begin = index == 0 ? 0 : options.milestones[index - 1];
  const double end = field_end(options, index);
  const double at = std::min(epoch, end);  // after the end of the last
  const double share = end > begin ? (at - begin) / (end - begin) : 1;
  const double first = options.values[2 * index];
  const double second = options.values[2 * index + 1];
  const double shape = options.shapes.empty() ? 0 : options.shapes[index];
  switch (static_cast<FieldShape>(static_cast<int>(shape))) {
    case FieldShape::kLinear:
      return first + (second - first) * share;
    case FieldShape::kSquare:
      return first * (1 - share) * (1 - share);
    case FieldShape::kConvex:
      return convex(options, at);
  }
  return second;
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

void require_convex(const ScheduleOptions& options) {
  require(options.mu > 0 && options.alpha > 0, "--lr-mu and --lr-alpha must be above 0");
}

std::unique_ptr<LearningRate> make_convex(const ScheduleOptions& options) {
  require_convex(options);
  return make<convex>(options);
}

std::unique_ptr<LearningRate> make_fields(const ScheduleOptions& options) {
  const std::size_t count = options.values.size() / 2;
  require(count > 0 && options.values.size() % 2 == 0,
          "this schedule needs --lr-values: two rates for each field, at its beginning and end");
  if (count > 1 || !options.milestones.empty()) require_milestones(options);
  require(options.milestones.size() + 1 == count || options.milestones.size() == count,
          "--lr-milestones must have the end of each field; that of the last may be left out");
  require(options.shapes.empty() || options.shapes.size() == count,
          "--lr-shapes needs one number for each two of --lr-values");
  for (const double shape : options.shapes) {
    require(shape == 0 || shape == 1 || shape == 2,
            "--lr-shapes must be 0 (linear), 1 (square) or 2 (convex)");
    if (shape == 2) require_convex(options);
  }
  return make<fields>(options);
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
          {"exponential", "times --lr-gamma every epoch, with every step a little",
           make<exponential>},
          {"convex", "--lr-gamma / (--lr-mu * (--lr-alpha + epoch)), whatever --lr is",
           make_convex},
          {"fields", "between two of --lr-values at a time, until each of --lr-milestones",
           make_fields},
          {"one-cycle", "up to --lr and down far below its start", make_one_cycle},
      });
  return registry;
}

}  // namespace cohort::schedules
