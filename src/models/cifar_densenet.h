// DenseNet for CIFAR (Huang et al., 2017): three dense blocks of 3x3 convolutions, each seeing all
// feature maps before it, with transitions that halve the channels and the image between them.
// Images from 4x4 up.
#pragma once

#include <memory>

#include "models/registry.h"

namespace cohort::models {

// options.depth is 3n + 4 (40 unless set), options.growth the channels that each convolution adds
// (12 unless set). The stem has twice the growth, as in the code of CHOCO-SGD. Dropout after each
// convolution only where options.dropout asks for it.
std::unique_ptr<Model> make_cifar_densenet(const ModelOptions& options, at::Generator generator);

}  // namespace cohort::models
