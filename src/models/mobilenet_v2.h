// MobileNetV2 (Sandler et al., 2018), as in torchvision. Images of any size.
#pragma once

#include <memory>

#include "models/registry.h"

namespace cohort::models {

// Dropout is 0.2 unless options say otherwise.
std::unique_ptr<Model> make_mobilenet_v2(const ModelOptions& options, at::Generator generator);

}  // namespace cohort::models
