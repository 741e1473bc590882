// AlexNet in its one-column form (Krizhevsky, 2014), as in torchvision. Images from 63x63 up.
#pragma once

#include <memory>

#include "models/registry.h"

namespace cohort::models {

// Dropout is 0.5 unless options say otherwise.
std::unique_ptr<Model> make_alexnet(const ModelOptions& options, at::Generator generator);

}  // namespace cohort::models
