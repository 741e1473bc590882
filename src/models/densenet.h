// DenseNet-121 for ImageNet (Huang et al., 2017), as in torchvision. Images from 29x29 up.
#pragma once

#include <memory>

#include "models/registry.h"

namespace cohort::models {

// Dropout after each dense layer only where options.dropout asks for it.
std::unique_ptr<Model> make_densenet121(const ModelOptions& options, at::Generator generator);

}  // namespace cohort::models
