#include "methods/local.h"

#include "core/error.h"

namespace cohort::methods {

void Local::update(Replica& replica, const StepInfo& info) { replica.apply_gradients(info.lr); }

std::unique_ptr<UpdateMethod> make_local(const MethodOptions& options) {
  if (options.size != 1) {
    throw ConfigError("--method local trains one worker alone, got " +
                      std::to_string(options.size) + " workers: give --method all-reduce");
  }
  return std::make_unique<Local>();
}

MethodTraits local_traits() { return {.workers = MethodTraits::Workers::kOneAlone}; }

}  // namespace cohort::methods
