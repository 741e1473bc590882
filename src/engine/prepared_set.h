// Samples read and normalised once, for the many models that are to be compared on them.
//
// Unchanging once built: several threads may evaluate on one set, each with a model of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "core/types.h"
#include "data/dataset.h"
#include "engine/batch_tensors.h"
#include "engine/evaluator.h"
#include "models/model.h"

namespace cohort::engine {

class PreparedSet {
 public:
  // Reads the samples with those numbers, in that order, without augmentation (the data set must be
  // one that has none).
  PreparedSet(const data::Dataset& dataset, const std::vector<std::int64_t>& samples,
              const EvaluatorOptions& options);

  // What it takes in memory.
  static std::int64_t bytes(const data::Dataset& dataset, std::int64_t samples);

  std::int64_t size() const { return size_; }
  const std::vector<BatchTensors>& batches() const { return batches_; }

 private:
  std::int64_t size_;
  std::vector<BatchTensors> batches_;
};

// As evaluate() of a data set, by this thread alone.
Evaluation evaluate(models::Model& model, const PreparedSet& set);

// The loss of each sample.
std::vector<float> losses_of(models::Model& model, const PreparedSet& set);

// 0, 1, ... size - 1
std::vector<std::int64_t> all_samples(const data::Dataset& dataset);

}  // namespace cohort::engine
