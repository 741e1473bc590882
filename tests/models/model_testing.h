// What the tests of models share.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "models/registry.h"

namespace cohort {

inline at::Generator seeded(std::uint64_t seed) { return at::detail::createCPUGenerator(seed); }

// Models made for ImageNet have 1000 classes and larger images.
inline bool is_small_image_model(const std::string& name) {
  for (const char* small :
       {"mlp-100", "mlp-4096", "lenet", "mnistnet", "cifar10net", "resnet8", "resnet20", "resnet32",
        "resnet44", "resnet56", "resnet110", "wideresnet", "densenet"}) {
    if (name == small) return true;
  }
  return false;
}

// The shapes that a model is usually given.
inline ModelOptions usual_options(const std::string& name) {
  ModelOptions options;
  if (!is_small_image_model(name)) return options;
  const bool mnist =
      name == "mlp-100" || name == "mlp-4096" || name == "lenet" || name == "mnistnet";
  options.channels = mnist ? 1 : 3;
  options.height = options.width = mnist ? 28 : 32;
  options.classes = 10;
  return options;
}

}  // namespace cohort
