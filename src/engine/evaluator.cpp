#include "engine/evaluator.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "collectives/chunks.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/failpoint.h"
#include "data/text.h"
#include "engine/batch_source.h"
#include "engine/carried_state.h"
#include "engine/classification.h"

namespace cohort::engine {
namespace {

// One worker's samples in the order to read them, and how many at a time.
struct Part {
  std::vector<std::int64_t> samples;
  std::int64_t batch = 1;
};

Part part_of(const models::Model& model, const data::Dataset& dataset,
             const EvaluatorOptions& options, const WorkerGroup& group) {
  Part part;
  if (const data::TextDataset* text = data::as_text(dataset)) {
    // All pieces of some columns, the first of which is the longest.
    const Range columns = collectives::chunk_of(text->columns(), group.present(), group.place());
    part.batch = columns.size;
    if (columns.size == 0) return part;
    for (std::int64_t piece = 0; piece < text->pieces_of(columns.begin); ++piece) {
      for (std::int64_t column = columns.begin; column < columns.end(); ++column) {
        part.samples.push_back(piece * text->columns() + column);
      }
    }
    return part;
  }
  const Range mine = collectives::chunk_of(dataset.size(), group.present(), group.place());
  part.samples.resize(static_cast<std::size_t>(mine.size));
  std::iota(part.samples.begin(), part.samples.end(), mine.begin);
  part.batch = options.batch;
  if (options.placement.device.is_cpu()) {
    const auto work = static_cast<double>(model.store().numel() * dataset.shape().numel());
    part.batch = samples_of_a_pass(work, options.batch);
  }
  return part;
}

struct PartSums {
  ClassificationSums::Values values;
  bool stopped = false;
};

PartSums evaluate_part(models::Model& model, const data::Dataset& dataset, Part part,
                       const EvaluatorOptions& options) {
  ClassificationSums sums;
  if (part.samples.empty()) return {sums.values()};
  const auto count = static_cast<std::int64_t>(part.samples.size());
  const data::SampleOrder order({.samples = count,
                                 .partition = std::move(part.samples),
                                 .batch = part.batch,
                                 .shuffle = false});
  const auto source = make_batch_source(
      dataset, order, {.threads = options.loader_threads, .last_step = order.steps_per_epoch()},
      options.placement);
  const AnotherText another(model);
  for (Step step = 0; step < order.steps_per_epoch(); ++step) {
    COHORT_FAILPOINT("evaluation.batch");
    if (options.stop != nullptr && *options.stop) return {sums.values(), true};
    source->wait();
    const BatchTensors batch = source->take();
    const at::Tensor logits = model.forward(batch.inputs);
    sums.add(classification_loss(model, logits, batch.labels, 0.0), logits, batch.labels);
    if (options.progress) {
      options.progress(static_cast<double>(step + 1) /
                       static_cast<double>(order.steps_per_epoch()));
    }
  }
  return {sums.values()};
}

// In the order of the ranks, so that all add up to the same bits.
PartSums sum_of_all(const PartSums& own, const WorkerGroup& group) {
  static_assert(std::is_trivially_copyable_v<PartSums>);
  PartSums sum;
  ClassificationSums::Values& total = sum.values;
  for (const std::string& bytes : group.gather({reinterpret_cast<const char*>(&own), sizeof own})) {
    if (bytes.empty()) continue;  // of one that is lost
    if (bytes.size() != sizeof(PartSums)) throw PeerError("a worker sent no evaluation");
    PartSums their;
    std::memcpy(&their, bytes.data(), sizeof their);
    const ClassificationSums::Values& part = their.values;
    sum.stopped = sum.stopped || their.stopped;
    total.loss += part.loss;
    total.top1 += part.top1;
    total.top5 += part.top5;
    total.samples += part.samples;
  }
  return sum;
}

}  // namespace

std::int64_t samples_of_a_pass(double work_of_sample, std::int64_t batch) {
  constexpr double kWork = 3.5e12;
  constexpr double kFewest = 16;
  return static_cast<std::int64_t>(
      std::min(static_cast<double>(batch), std::max(kFewest, kWork / work_of_sample)));
}

std::optional<Evaluation> try_evaluate(models::Model& model, const data::Dataset& dataset,
                                       const EvaluatorOptions& options, const WorkerGroup& group) {
  Evaluation result;
  bool stopped = false;
  const bool was_training = model.store().training();
  model.store().set_training(false);
  {
    const StopWatch watch(result.seconds);
    const c10::NoGradGuard no_grad;
    PartSums sum;
    int present = 0;
    do {  // again with those who are left, when one is lost with its part
      present = group.present();
      sum = sum_of_all(
          evaluate_part(model, dataset, part_of(model, dataset, options, group), options), group);
    } while (group.present() < present);
    stopped = sum.stopped;
    const ClassificationSums::Values& values = sum.values;
    const auto samples = static_cast<double>(values.samples);
    result.loss = values.loss / samples;
    result.top1 = static_cast<double>(values.top1) / samples;
    result.top5 = static_cast<double>(values.top5) / samples;
    result.samples = values.samples;
  }
  model.store().set_training(was_training);
  // All have gathered the same sums, so all decide alike.
  return stopped ? std::nullopt : std::optional(result);
}

Evaluation evaluate(models::Model& model, const data::Dataset& dataset,
                    const EvaluatorOptions& options, const WorkerGroup& group) {
  COHORT_CHECK(options.stop == nullptr, "an evaluation that may be stopped has perhaps no result");
  return *try_evaluate(model, dataset, options, group);
}

}  // namespace cohort::engine
