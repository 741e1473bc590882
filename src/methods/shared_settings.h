// Settings that several methods list.
#pragma once

#include <vector>

#include "config/run_config.h"
#include "core/types.h"

namespace cohort::methods {

config::ConfigField average_every_field();
config::ConfigField check_replicas_field();
// What the two say. `usual`: the method's own number, where the user names none.
Step steps_between_exchanges(const config::SettingValues& own, Step usual = 1);
Step steps_between_comparisons(const config::SettingValues& own);  // 0: never

// Which compressor; what it takes is listed by the compressors.
config::ConfigField compressor_field();
// Where the servers are, and which worker this one is.
std::vector<config::ConfigField> server_place_fields();

}  // namespace cohort::methods
