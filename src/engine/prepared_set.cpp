#include "engine/prepared_set.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <c10/core/GradMode.h>

#include <numeric>

#include "core/clock.h"
#include "engine/classification.h"

namespace cohort::engine {
namespace {

// In evaluation mode as long as this lives.
class Evaluating {
 public:
  explicit Evaluating(models::Model& model)
      : model_(model), was_training_(model.store().training()) {
    model_.store().set_training(false);
  }
  ~Evaluating() { model_.store().set_training(was_training_); }
  Evaluating(const Evaluating&) = delete;
  Evaluating& operator=(const Evaluating&) = delete;

 private:
  models::Model& model_;
  bool was_training_;
  c10::NoGradGuard no_grad_;
};

}  // namespace

PreparedSet::PreparedSet(const data::Dataset& dataset, const std::vector<std::int64_t>& samples,
                         const EvaluatorOptions& options)
    : size_(static_cast<std::int64_t>(samples.size())) {
  const data::SampleOrder order(
      {.samples = size_, .partition = samples, .batch = options.batch, .shuffle = false});
  // The loader uses its buffers again, so each batch is copied.
  data::Loader loader = make_loader(
      dataset, order, {.threads = options.loader_threads, .last_step = order.steps_per_epoch()},
      options.placement.device);
  for (Step step = 0; step < order.steps_per_epoch(); ++step) {
    const BatchTensors batch = to_tensors(loader.next(), dataset.shape(), options.placement);
    batches_.push_back({batch.inputs.clone(), batch.labels.clone()});
  }
}

std::int64_t PreparedSet::bytes(const data::Dataset& dataset, std::int64_t samples) {
  return samples * dataset.shape().numel() * static_cast<std::int64_t>(sizeof(float));
}

Evaluation evaluate(models::Model& model, const PreparedSet& set) {
  Evaluation result;
  const StopWatch watch(result.seconds);
  const Evaluating evaluating(model);
  ClassificationSums sums;
  for (const BatchTensors& batch : set.batches()) {
    const at::Tensor logits = model.forward(batch.inputs);
    sums.add(classification_loss(model, logits, batch.labels, 0.0), logits, batch.labels);
  }
  const ClassificationSums::Values values = sums.values();
  const auto samples = static_cast<double>(values.samples);
  result.loss = values.loss / samples;
  result.top1 = static_cast<double>(values.top1) / samples;
  result.top5 = static_cast<double>(values.top5) / samples;
  result.samples = values.samples;
  return result;
}

std::vector<float> losses_of(models::Model& model, const PreparedSet& set) {
  const Evaluating evaluating(model);
  std::vector<float> losses;
  losses.reserve(static_cast<std::size_t>(set.size()));
  for (const BatchTensors& batch : set.batches()) {
    const at::Tensor each = at::cross_entropy_loss(model.forward(batch.inputs), batch.labels,
                                                   /*weight=*/{}, at::Reduction::None)
                                .cpu()
                                .contiguous();
    losses.insert(losses.end(), each.data_ptr<float>(), each.data_ptr<float>() + each.numel());
  }
  return losses;
}

std::vector<std::int64_t> all_samples(const data::Dataset& dataset) {
  std::vector<std::int64_t> samples(static_cast<std::size_t>(dataset.size()));
  std::iota(samples.begin(), samples.end(), std::int64_t{0});
  return samples;
}

}  // namespace cohort::engine
