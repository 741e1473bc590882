#include "engine/classification.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/stack.h>
#include <c10/core/GradMode.h>

#include "data/dataset.h"

namespace cohort::engine {
namespace {

constexpr std::int64_t kTop = 5;

at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& labels, double smoothing) {
  return at::cross_entropy_loss(logits.to(at::kFloat), labels.flatten(), /*weight=*/{},
                                at::Reduction::Mean, data::kNoLabel, smoothing);
}

// How many classes beat the right one: 0 when it is the best guess.
std::int64_t place_of(const float* row, std::int64_t classes, std::int64_t label) {
  const float right = row[label];
  if (right != right) return kTop;  // also where there are fewer classes than that
  std::int64_t place = 0;
  // Written so that a NaN elsewhere counts against the right class.
  for (std::int64_t i = 0; i < label; ++i) place += row[i] < right ? 0 : 1;
  for (std::int64_t i = label + 1; i < classes; ++i) place += row[i] <= right ? 0 : 1;
  return place;
}

}  // namespace

at::Tensor classification_loss(const models::Model& model, const at::Tensor& logits,
                               const at::Tensor& labels, double label_smoothing) {
  at::Tensor loss = cross_entropy(logits, labels, label_smoothing);
  if (!model.store().training()) return loss;
  for (const models::AuxiliaryOutput& output : model.auxiliary()) {
    loss = loss + output.weight * cross_entropy(output.logits, labels, label_smoothing);
  }
  return loss;
}

at::Tensor sums_on_device(const at::Tensor& loss, const at::Tensor& logits,
                          const at::Tensor& all_labels) {
  const c10::NoGradGuard no_grad;
  const at::Tensor labels = all_labels.flatten();
  const at::Tensor counted = labels.ne(data::kNoLabel);
  const at::Tensor column = labels.clamp_min(0).unsqueeze(1);
  const at::Tensor right = logits.gather(1, column);
  const at::Tensor earlier = at::arange(logits.size(1), labels.options()).unsqueeze(0).lt(column);
  const at::Tensor place = logits.gt(right)
                               .logical_or(logits.eq(right).logical_and(earlier))
                               .logical_or(logits.isnan())
                               .sum(1) +
                           kTop * right.isnan().squeeze(1);
  const at::Tensor samples = counted.sum().to(at::kDouble);
  return at::stack({loss.detach().to(at::kDouble) * samples,
                    place.eq(0).logical_and(counted).sum().to(at::kDouble),
                    place.lt(kTop).logical_and(counted).sum().to(at::kDouble), samples});
}

void ClassificationSums::add(const at::Tensor& sums) {
  device_ = device_.defined() ? device_ + sums : sums.clone();
}

void ClassificationSums::add(const at::Tensor& loss, const at::Tensor& logits,
                             const at::Tensor& labels) {
  const c10::NoGradGuard no_grad;
  if (!logits.is_cpu()) {
    add(sums_on_device(loss, logits, labels));
    return;
  }
  const at::Tensor rows = logits.contiguous();
  const at::Tensor flat = labels.flatten();
  const std::int64_t classes = rows.size(1);
  const float* row = rows.data_ptr<float>();
  const std::int64_t* label = flat.data_ptr<std::int64_t>();
  std::int64_t samples = 0;
  for (std::int64_t i = 0; i < flat.numel(); ++i, row += classes) {
    if (label[i] == data::kNoLabel) continue;
    const std::int64_t place = place_of(row, classes, label[i]);
    host_.top1 += place < 1 ? 1 : 0;
    host_.top5 += place < kTop ? 1 : 0;
    ++samples;
  }
  host_.samples += samples;
  host_.loss += loss.item<double>() * static_cast<double>(samples);
}

ClassificationSums::Values ClassificationSums::values() const {
  Values sums = host_;
  if (device_.defined()) {
    const at::Tensor host = device_.cpu();
    const double* value = host.data_ptr<double>();
    sums.loss += value[0];
    sums.top1 += static_cast<std::int64_t>(value[1]);
    sums.top5 += static_cast<std::int64_t>(value[2]);
    sums.samples += static_cast<std::int64_t>(value[3]);
  }
  return sums;
}

}  // namespace cohort::engine
