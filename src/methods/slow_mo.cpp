#include "methods/slow_mo.h"

#include "config/own_settings.h"
#include "methods/local_rounds.h"

namespace cohort::methods {
namespace {

constexpr Step kSlowMoRound = 12;

struct SlowMoSettings {
  double momentum = 0.7;
  double lr = 1;
  std::string buffers = "reset";
};

const config::OwnSettings<SlowMoSettings>& settings() {
  static const config::OwnSettings<SlowMoSettings> table(
      "SlowMo", {{"slow-momentum", &SlowMoSettings::momentum,
                  "momentum of the step that ends a round", 0, 0.999999},
                 {"slow-lr", &SlowMoSettings::lr,
                  "factor of that step; 1 and no momentum: plain averaging", 1e-6, 100},
                 {"slow-buffers",
                  &SlowMoSettings::buffers,
                  "what a round leaves of the optimizer's own momentum",
                  0,
                  0,
                  {"reset", "keep", "average"}}});
  return table;
}

LocalRoundsOptions::Slots slots_of(const std::string& buffers) {
  using Slots = LocalRoundsOptions::Slots;
  if (buffers == "keep") return Slots::kKept;
  return buffers == "average" ? Slots::kAveraged : Slots::kZeroed;
}

}  // namespace

std::unique_ptr<UpdateMethod> make_slow_mo(const MethodOptions& options) {
  const SlowMoSettings own = settings().read(options.own);
  const auto outer = [own](const OuterState& state, const at::Tensor& change, double lr) {
    // Written so that a rate of 0, at the end of a schedule, divides nothing.
    state.x.sub_(change, own.lr).sub_(state.momentum, own.lr * lr * own.momentum);
    state.momentum.mul_(own.momentum);
    if (lr > 0) state.momentum.add_(change, 1 / lr);
  };
  return make_local_rounds(
      options, {.outer = outer, .average_every = kSlowMoRound, .slots = slots_of(own.buffers)});
}

MethodTraits slow_mo_traits() { return local_rounds_traits(kSlowMoRound, settings().fields()); }

}  // namespace cohort::methods
