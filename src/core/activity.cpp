#include "core/activity.h"

namespace cohort {

const char* phase_name(Phase phase) {
  switch (phase) {
    case Phase::kStarting:
      return "starting";
    case Phase::kLoading:
      return "loading data";
    case Phase::kComputing:
      return "computing gradients";
    case Phase::kExchanging:
      return "exchanging with the others";
    case Phase::kUpdating:
      return "updating parameters";
    case Phase::kEvaluating:
      return "evaluating";
    case Phase::kSaving:
      return "saving a checkpoint";
    case Phase::kEnded:
      return "at its end";
  }
  return "doing something unknown";  // another process's memory may hold anything
}

std::string Activity::text() const {
  return "at step " + std::to_string(step()) + ", " + phase_name(phase());
}

}  // namespace cohort
