// What the registry of a part that is chosen by name (a compressor, a topology) says of its own
// settings.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.h"

namespace cohort::config {

struct PartTraits {
  std::vector<ConfigField> settings = {};  // several parts may list the same one
  std::string needs = {};                  // the setting that the part cannot do without
  bool exact = false;                      // compressors: what arrives is what was given

  bool takes(std::string_view setting) const {
    return std::any_of(settings.begin(), settings.end(),
                       [&](const ConfigField& field) { return field.name == setting; });
  }
};

}  // namespace cohort::config
