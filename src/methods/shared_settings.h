// Settings that several methods list.
#pragma once

#include <vector>

#include "config/run_config.h"

namespace cohort {

ConfigField average_every_field();
ConfigField check_replicas_field();
// Which compressor; what it takes is listed by the compressors.
ConfigField compressor_field();
// Where the servers are, and which worker this one is.
std::vector<ConfigField> server_place_fields();

}  // namespace cohort
