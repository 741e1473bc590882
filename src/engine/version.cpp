#include "engine/version.h"

#include <torch/version.h>

namespace cohort::engine {

std::string version() { return COHORT_VERSION; }
std::string libtorch_version() { return TORCH_VERSION; }
std::string version_text() { return "cohort " + version() + ", libtorch " + libtorch_version(); }

}  // namespace cohort::engine
