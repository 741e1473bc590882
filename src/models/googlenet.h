// GoogLeNet (Szegedy et al., 2014), as in torchvision: with batch normalisation, 3x3 in place of
// the 5x5 convolutions, and both auxiliary classifiers. Images from 15x15 up.
#pragma once

#include <memory>

#include "models/registry.h"

namespace cohort::models {

// The auxiliary classifiers run only in training mode; each weighs 0.3 in the loss. Dropout before
// the main classifier is 0.2 unless options say otherwise; before the auxiliary ones it is 0.7.
std::unique_ptr<Model> make_googlenet(const ModelOptions& options, at::Generator generator);

}  // namespace cohort::models
