// A configuration file may hold anything: it is understood, or refused with a ConfigError.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "config/run_config.h"
#include "core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cohort::RunConfig config;
  try {
    cohort::merge_json(config, {reinterpret_cast<const char*>(data), size}, "fuzz",
                       cohort::common_fields());
  } catch (const cohort::ConfigError&) {
    return 0;
  }
  // What was accepted survives being written and read.
  cohort::RunConfig back;
  cohort::merge_json(back, cohort::to_json(config, cohort::common_fields()).dump(), "fuzz",
                     cohort::common_fields());
  if (!(back == config)) __builtin_trap();
  return 0;
}
