// Loss and accuracy of a model on a whole data set: every sample once, whoever evaluates it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "core/stoppable_wait.h"
#include "data/dataset.h"
#include "engine/batch_tensors.h"
#include "engine/worker_group.h"
#include "models/model.h"

namespace cohort::engine {

struct Evaluation {
  double loss = 0;
  double top1 = 0;  // shares, 0 to 1
  double top5 = 0;
  std::int64_t samples = 0;
  double seconds = 0;
};

struct EvaluatorOptions {
  std::int64_t batch = 500;  // not of text, of which all columns are read side by side
  int loader_threads = 1;
  BatchPlacement placement = {};
  StopFlag stop = nullptr;                         // ends an evaluation after the batch under way
  std::function<void(double)> progress = nullptr;  // told after each batch: the share that is done
};

// How many samples a forward pass takes on a CPU: `batch`, or fewer where the work of a sample
// (parameters times elements, which it is at most) is large. A signal waits for a pass to end.
std::int64_t samples_of_a_pass(double work_of_sample, std::int64_t batch);

// Each worker evaluates its part of the samples (of the columns of a text), and all get the result
// of the whole. Their models must be equal. The model is in training mode again afterwards if it
// was before; its parameters and statistics do not change. Without a value where a worker was told
// to stop before its part was done.
std::optional<Evaluation> try_evaluate(models::Model& model, const data::Dataset& dataset,
                                       const EvaluatorOptions& options,
                                       const WorkerGroup& group = {});
// The same where nobody stops it.
Evaluation evaluate(models::Model& model, const data::Dataset& dataset,
                    const EvaluatorOptions& options, const WorkerGroup& group = {});

}  // namespace cohort::engine
