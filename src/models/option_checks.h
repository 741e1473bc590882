// What factories ask of their ModelOptions before they build anything.
#pragma once

#include <cstdint>
#include <string_view>

#include "models/registry.h"

namespace cohort::models {

// Throws ConfigError unless the model takes the kind of data, there are channels and classes,
// dropout is below 1, and height and width are at least `minimum_size`: the smallest image that
// leaves every layer of `model` at least one pixel.
void check_options(std::string_view model, const ModelOptions& options,
                   std::int64_t minimum_size = 1);

// options.dropout, or `standard` where it is not set.
double dropout_or(const ModelOptions& options, double standard);

}  // namespace cohort::models
