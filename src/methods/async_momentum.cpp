#include "methods/async_momentum.h"

#include <algorithm>
#include <cmath>

namespace cohort::methods {

Adaptation adapt_momentum(config::RunConfig& config, const IsGiven& is_given) {
  if (is_given("momentum") || config.server_mode == "sync" || config.workers < 2) return {};
  // Nesterov's form is a choice of momentum, and needs some.
  if (config.optimizer != "sgd" || config.nesterov) return {};
  const double implicit = 1 - 1 / static_cast<double>(config.workers);
  const double usual = config.momentum;
  config.momentum = std::round(1e3 * std::max(0.0, usual - implicit)) / 1e3;
  if (config.momentum == usual) return {};
  const auto text = [](double value) {
    std::string digits = std::to_string(value);
    digits.erase(digits.find_last_not_of('0') + 1);
    if (digits.back() == '.') digits.pop_back();
    return digits;
  };
  return {"momentum " + text(config.momentum) + " instead of " + text(usual) +
              ", because updates of " + std::to_string(config.workers) +
              " workers without order act like momentum themselves",
          {"momentum"}};
}

}  // namespace cohort::methods
