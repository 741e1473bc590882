// The small convolutional network of the swamp experiments: 5x5 convolutions to 20 and 50 channels,
// each with 2x2 max pooling, then 500 and the classes. No padding; images from 16x16 up.
#pragma once

#include <memory>

#include "models/registry.h"

namespace cohort::models {

// 431,080 parameters on MNIST. Returns logits; the logarithm of softmax belongs to the loss.
std::unique_ptr<Model> make_mnistnet(const ModelOptions& options, at::Generator generator);

// The same layers; on CIFAR's 3x32x32 they have 657,080 parameters.
std::unique_ptr<Model> make_cifar10net(const ModelOptions& options, at::Generator generator);

}  // namespace cohort::models
