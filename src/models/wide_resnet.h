// Wide residual networks for CIFAR (Zagoruyko and Komodakis, 2016): pre-activation blocks, three
// stages of 16k, 32k and 64k channels. Images of any size.
#pragma once

#include <memory>

#include "models/registry.h"

namespace cohort::models {

// options.depth is 6n + 4 (28 unless set), options.widen is k (4 unless set). Dropout between the
// two convolutions of a block only where options.dropout asks for it.
std::unique_ptr<Model> make_wide_resnet(const ModelOptions& options, at::Generator generator);

}  // namespace cohort::models
