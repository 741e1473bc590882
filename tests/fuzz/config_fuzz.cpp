// A configuration file may hold anything: it is understood, or refused with a ConfigError.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "config/run_config.h"
#include "core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cohort::config::RunConfig config;
  try {
    cohort::config::merge_json(config, {reinterpret_cast<const char*>(data), size}, "fuzz",
                               cohort::config::common_fields());
  } catch (const cohort::ConfigError&) {
    return 0;
  }
  // What was accepted survives being written and read.
  cohort::config::RunConfig back;
  cohort::config::merge_json(
      back, cohort::config::to_json(config, cohort::config::common_fields()).dump(), "fuzz",
      cohort::config::common_fields());
  if (!(back == config)) __builtin_trap();
  return 0;
}
