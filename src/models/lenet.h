// LeNet-5 (LeCun et al., 1998) with ReLU and max pooling: 5x5 convolutions to 6, 16 and 120
// channels, then 84 and the classes. 61,706 parameters on MNIST.
#pragma once

#include <memory>

#include "models/registry.h"

namespace cohort::models {

// Images from 28x28 up; those below 32 are padded by 2 on every side first.
std::unique_ptr<Model> make_lenet(const ModelOptions& options, at::Generator generator);

}  // namespace cohort::models
