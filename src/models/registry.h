// All models by name.
#pragma once

#include <ATen/core/Generator.h>

#include <cstdint>

#include "core/registry.h"
#include "models/model.h"

namespace cohort {

// What a model must be told of the data, and the few settings that models share.
struct ModelOptions {
  std::int64_t channels = 3;
  std::int64_t height = 224;  // models that adapt ignore height and width
  std::int64_t width = 224;
  std::int64_t classes = 1000;
  double dropout = -1;      // probability; negative: the model's own default
  std::int64_t depth = 0;   // wideresnet, densenet (CIFAR); 0: the model's own default
  std::int64_t widen = 0;   // wideresnet's widening factor; 0: 4
  std::int64_t growth = 0;  // densenet's growth rate; 0: 12
};

using ModelRegistry = Registry<Model, const ModelOptions&, at::Generator>;

const ModelRegistry& models();

}  // namespace cohort
