// Residual networks for CIFAR (He et al., 2015, section 4.2): a 3x3 stem of 16 channels and three
// stages of 16, 32 and 64 planes, with projections (1x1 convolution and batch normalisation) where
// the shape changes. Images of any size.
#pragma once

#include <memory>

#include "models/registry.h"

namespace cohort::models {

// `depth` is 6n + 2 with n blocks per stage. From 44 on the blocks are bottlenecks, as in the code
// of CHOCO-SGD, so these are wider and deeper than the paper's networks of the same name.
std::unique_ptr<Model> make_cifar_resnet(const ModelOptions& options, at::Generator generator,
                                         int depth);

}  // namespace cohort::models
