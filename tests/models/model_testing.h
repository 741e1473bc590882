// What the tests of models share.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>

#include "models/registry.h"

namespace cohort::models {

inline at::Generator seeded(std::uint64_t seed) { return at::detail::createCPUGenerator(seed); }

// Models made for ImageNet have 1000 classes and larger images.
inline bool is_small_image_model(const std::string& name) {
  for (const char* small :
       {"mlp-100", "mlp-4096", "lenet", "mnistnet", "cifar10net", "resnet8", "resnet20", "resnet32",
        "resnet44", "resnet56", "resnet110", "wideresnet", "densenet", "resnet18-cifar"}) {
    if (name == small) return true;
  }
  return false;
}

// The shapes that a model is usually given.
inline ModelOptions usual_options(const std::string& name) {
  ModelOptions options;
  options.text = takes_text(name);
  if (options.text) options.classes = 28'869;  // words of WikiText-2 in the CHOCO-SGD paper
  if (!is_small_image_model(name)) return options;
  const bool mnist =
      name == "mlp-100" || name == "mlp-4096" || name == "lenet" || name == "mnistnet";
  options.channels = mnist ? 1 : 3;
  options.height = options.width = mnist ? 28 : 32;
  options.classes = 10;
  return options;
}

// The smallest image each model takes; 1 where it is not listed.
inline std::int64_t smallest_size(const std::string& name) {
  static const std::map<std::string, std::int64_t> sizes = {
      {"lenet", 28},   {"mnistnet", 16},  {"cifar10net", 16},  {"densenet", 4},
      {"alexnet", 63}, {"googlenet", 15}, {"densenet121", 29}, {"squeezenet1_0", 21}};
  if (name.starts_with("vgg")) return 32;
  const auto found = sizes.find(name);
  return found == sizes.end() ? 1 : found->second;
}

// The VGGs differ only in how many equal layers they have, and their 140 million initial values and
// gradients take seconds.
inline bool is_like_another_vgg(const std::string& name) {
  return name.starts_with("vgg") && name != "vgg16" && name != "vgg11_bn";
}

}  // namespace cohort::models
