// All models by name.
#pragma once

#include <ATen/core/Generator.h>

#include <cstdint>
#include <string_view>

#include "core/registry.h"
#include "models/model.h"

namespace cohort::models {

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

  bool text = false;  // the inputs are words, of which there are `classes` different ones
  std::int64_t rnn_hidden = 650;
  std::int64_t rnn_layers = 3;
  bool tie_weights = true;  // of the embedding and the output
};

using ModelRegistry = Registry<Model, const ModelOptions&, at::Generator>;

const ModelRegistry& models();

// Whether the model takes text; the others take images.
bool takes_text(std::string_view model);

}  // namespace cohort::models
