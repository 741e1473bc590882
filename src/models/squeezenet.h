// SqueezeNet 1.0 (Iandola et al., 2016), as in torchvision. Images from 21x21 up.
#pragma once

#include <memory>

#include "models/registry.h"

namespace cohort::models {

// Dropout is 0.5 unless options say otherwise.
std::unique_ptr<Model> make_squeezenet(const ModelOptions& options, at::Generator generator);

}  // namespace cohort::models
