// Networks of linear layers only. They take inputs of any shape with the number of entries per
// sample that they were built for.
#pragma once

#include <memory>

#include "models/registry.h"

namespace cohort::models {

// input - 100 sigmoid - classes, weights from N(0, 1), biases 0: 79,510 parameters on MNIST. The
// network of the classic TensorFlow between-graph replication example.
std::unique_ptr<Model> make_mlp_100(const ModelOptions& options, at::Generator generator);

// input - 4096 ReLU - 4096 ReLU - classes: almost nothing but large matrix products.
std::unique_ptr<Model> make_mlp_4096(const ModelOptions& options, at::Generator generator);

}  // namespace cohort::models
