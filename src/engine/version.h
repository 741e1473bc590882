// What this program is and what it was built with.
#pragma once

#include <string>

namespace cohort::engine {

std::string version();           // "0.1.0"
std::string libtorch_version();  // "1.13.0"
std::string version_text();      // for --version

}  // namespace cohort::engine
