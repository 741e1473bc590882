#include "engine/evaluator.h"

#include <c10/core/GradMode.h>

#include "core/clock.h"
#include "engine/classification.h"

namespace cohort {

Evaluation evaluate(Model& model, const Dataset& dataset, const EvaluatorOptions& options) {
  Evaluation result;
  const bool was_training = model.store().training();
  model.store().set_training(false);
  {
    const StopWatch watch(result.seconds);
    const c10::NoGradGuard no_grad;
    const SampleOrder order({.samples = dataset.size(), .batch = options.batch, .shuffle = false});
    Loader loader = make_loader(
        dataset, order, {.threads = options.loader_threads, .last_step = order.steps_per_epoch()},
        options.placement.device);
    ClassificationSums sums;
    for (Step step = 0; step < order.steps_per_epoch(); ++step) {
      const BatchTensors batch = to_tensors(loader.next(), dataset.shape(), options.placement);
      const at::Tensor logits = model.forward(batch.inputs);
      sums.add(classification_loss(model, logits, batch.labels, 0.0), logits, batch.labels);
    }
    const ClassificationSums::Values values = sums.values();
    const auto samples = static_cast<double>(values.samples);
    result.loss = values.loss / samples;
    result.top1 = static_cast<double>(values.top1) / samples;
    result.top5 = static_cast<double>(values.top5) / samples;
    result.samples = values.samples;
  }
  model.store().set_training(was_training);
  return result;
}

}  // namespace cohort
