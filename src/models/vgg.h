// VGG (Simonyan and Zisserman, 2014), as in torchvision: 3x3 convolutions in five groups with max
// pooling, then 4096, 4096 and the classes. Images from 32x32 up.
#pragma once

#include <memory>

#include "models/registry.h"

namespace cohort::models {

// `depth` is 11, 13, 16 or 19; with `normalized`, batch normalisation follows each convolution.
// Dropout is 0.5 unless options say otherwise.
std::unique_ptr<Model> make_vgg(const ModelOptions& options, at::Generator generator, int depth,
                                bool normalized);

}  // namespace cohort::models
