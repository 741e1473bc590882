#include "methods/diloco.h"

#include "config/own_settings.h"
#include "methods/local_rounds.h"

namespace cohort::methods {
namespace {

constexpr Step kDilocoRound = 500;

struct DilocoSettings {
  double lr = 0.7;
  double momentum = 0.9;
};

const config::OwnSettings<DilocoSettings>& settings() {
  static const config::OwnSettings<DilocoSettings> table(
      "DiLoCo", {{"outer-lr", &DilocoSettings::lr, "rate of the step that ends a round", 1e-6, 100},
                 {"outer-momentum", &DilocoSettings::momentum, "Nesterov momentum of that step", 0,
                  0.999999}});
  return table;
}

// AdamW on the workers, unless something says that the user wants another optimizer.
Adaptation choose_adamw(config::RunConfig& config, const IsGiven& is_given) {
  if (is_given("optimizer") || is_given("momentum") || is_given("nesterov")) return {};
  config.optimizer = "adamw";
  if (is_given("lr")) return {"workers take steps of adamw, as in DiLoCo", {"optimizer"}};
  config.lr = 0.001;
  return {"workers take steps of adamw at a rate of 0.001, as in DiLoCo", {"optimizer", "lr"}};
}

}  // namespace

std::unique_ptr<UpdateMethod> make_diloco(const MethodOptions& options) {
  const DilocoSettings own = settings().read(options.own);
  const auto outer = [own](const OuterState& state, const at::Tensor& change, double) {
    state.momentum.mul_(own.momentum).add_(change);
    state.x.sub_(change, own.lr).sub_(state.momentum, own.lr * own.momentum);
  };
  return make_local_rounds(options, {.outer = outer, .average_every = kDilocoRound});
}

MethodTraits diloco_traits() {
  MethodTraits traits = local_rounds_traits(kDilocoRound, settings().fields());
  traits.adapt = choose_adamw;
  return traits;
}

}  // namespace cohort::methods
