#include "engine/training_step.h"

#include <ATen/ops/stack.h>
#include <c10/core/GradMode.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.h"
#include "core/failpoint.h"
#include "core/random.h"
#include "engine/generator.h"

namespace cohort::engine {
namespace {

double seconds_of(const PauseClock* pauses) { return pauses != nullptr ? pauses->seconds() : 0; }

}  // namespace

TrainingStep::TrainingStep(models::Model& model, methods::Replica& replica,
                           methods::UpdateMethod& method, const TrainingStepOptions& options)
    : model_(model),
      replica_(replica),
      method_(method),
      options_(options),
      idle_(options.device),
      computing_(options.device),
      exchanging_(options.device) {
  model_.store().set_generator(make_generator(options_.seed, options_.device));
  if (auto* const exchange = dynamic_cast<methods::OverlappedExchange*>(&method)) {
    replica_.set_gradient_listener(
        [this, exchange](Range range) { exchange->gradients_ready(replica_, range); });
  }
  // What layers exchange passes through the host.
  if (options_.record && methods::can_record(options_.device) && !model_.store().statistics_sum()) {
    recorder_ = std::make_unique<StepRecorder>(
        model_.store().generator(), [this](const BatchTensors& batch, std::int64_t samples_of_all) {
          return passes_of(batch, samples_of_all, nullptr);
        });
  }
  replica_.take_update_seconds();  // of others
  idle_.begin();
}

TrainingStep::~TrainingStep() { replica_.set_gradient_listener(nullptr); }

void TrainingStep::run(const BatchTensors& batch, std::int64_t samples_of_all,
                       const methods::StepInfo& info, ClassificationSums& sums, double waited) {
  info_ = info;
  waited_ += waited;
  idle_.end();
  const double paused = seconds_of(options_.pauses);
  exchanging_.begin();
  const methods::StepKind kind = method_.before_step(replica_);
  exchanging_.end();
  paused_ += seconds_of(options_.pauses) - paused;

  computing_.begin();
  COHORT_FAILPOINT("training.compute.rank" + std::to_string(options_.rank));
  if (kind == methods::StepKind::kProbe) {
    probe(batch, sums);
  } else {
    gradients_of(batch, samples_of_all, sums);
  }
  computing_.end();

  const double paused_before_update = seconds_of(options_.pauses);
  exchanging_.begin();
  method_.update(replica_, info_);
  exchanging_.end();
  paused_ += seconds_of(options_.pauses) - paused_before_update;
  idle_.begin();
}

// Only looked at, not learnt from.
void TrainingStep::probe(const BatchTensors& batch, ClassificationSums& sums) {
  const c10::NoGradGuard no_grad;
  seed_dropout();
  replica_.refresh_copies();
  const at::Tensor logits = model_.forward(batch.inputs);
  const at::Tensor loss =
      classification_loss(model_, logits, batch.labels, options_.label_smoothing);
  info_.loss = loss.item<double>();
  check_loss(info_.loss, info_);
  sums.add(loss, logits, batch.labels);
}

void TrainingStep::seed_dropout() {
  model_.store().generator().set_current_seed(derive_seed(
      options_.seed, "dropout",
      {static_cast<std::uint64_t>(options_.rank), static_cast<std::uint64_t>(info_.step)}));
}

void TrainingStep::gradients_of(const BatchTensors& batch, std::int64_t samples_of_all,
                                ClassificationSums& sums) {
  seed_dropout();
  replica_.begin_step();
  if (options_.device.is_cpu()) {
    passes_of(batch, samples_of_all, &sums);
  } else {
    // What a recurrent model carries on is new in every step.
    const bool repeats = recorder_ && !model_.carried().defined();
    const at::Tensor of_step =
        repeats ? recorder_->run(batch, samples_of_all) : passes_of(batch, samples_of_all, nullptr);
    if (of_step.defined()) {
      sums.add(of_step);
      unread_.emplace_back(info_, repeats ? of_step.clone() : of_step);
    }
  }
  replica_.announce_gradients();
}

// Returns sums_on_device(), or, with `sums`, adds to them. Undefined: of no samples.
at::Tensor TrainingStep::passes_of(const BatchTensors& batch, std::int64_t samples_of_all,
                                   ClassificationSums* sums) {
  const std::int64_t samples = batch.labels.size(0);
  const std::int64_t pass_samples =
      options_.pass_samples > 0 ? options_.pass_samples : std::max<std::int64_t>(1, samples);
  std::int64_t passes = (samples + pass_samples - 1) / pass_samples;
  // Layers that exchange statistics need every worker in every pass, also one without samples.
  if (model_.store().statistics_sum()) passes = std::max(passes, options_.passes);
  // The plain mean over workers of gradients weighted so is the gradient of the whole batch's
  // mean. Exactly 1 but for an epoch's last batch.
  const double weight = static_cast<double>(samples * options_.workers) /
                        static_cast<double>(std::max<std::int64_t>(1, samples_of_all));
  at::Tensor all;
  for (std::int64_t pass = 0; pass < passes; ++pass) {
    replica_.begin_pass(pass + 1 == passes);
    const std::int64_t begin = std::min(pass * pass_samples, samples);
    const std::int64_t size = std::min(pass_samples, samples - begin);
    const BatchTensors part = passes == 1 ? batch
                                          : BatchTensors{batch.inputs.narrow(0, begin, size),
                                                         batch.labels.narrow(0, begin, size)};
    if (size == 0) {
      empty_pass(part);
      continue;
    }
    const double share = weight * (static_cast<double>(size) / static_cast<double>(samples));
    const at::Tensor of_pass = one_pass(part, share, sums);
    all = all.defined() ? all.add(of_pass) : of_pass;
  }
  replica_.collect_gradients();
  return all;
}

at::Tensor TrainingStep::one_pass(const BatchTensors& batch, double share,
                                  ClassificationSums* sums) {
  const at::Tensor logits = model_.forward(batch.inputs);
  const at::Tensor loss =
      classification_loss(model_, logits, batch.labels, options_.label_smoothing);
  at::Tensor on_device;
  if (sums != nullptr) {
    check_loss(loss.item<double>(), info_);
    sums->add(loss, logits, batch.labels);
  } else {
    on_device = sums_on_device(loss, logits, batch.labels);
  }
  // The gradient of the whole batch's mean is the share-weighted sum over its parts.
  (share == 1.0 ? loss : loss.mul(share)).backward();
  return on_device;
}

void TrainingStep::empty_pass(const BatchTensors& batch) {
  at::Tensor sum = model_.forward(batch.inputs).sum();
  // Their layers exchange too.
  for (const models::AuxiliaryOutput& output : model_.auxiliary())
    sum = sum.add(output.logits.sum());
  sum.mul(0.0).backward();
}

StepTimes TrainingStep::finish() {
  if (!unread_.empty()) {
    const c10::NoGradGuard no_grad;
    std::vector<at::Tensor> sums;
    for (const auto& [info, of_step] : unread_) sums.push_back(of_step);
    const at::Tensor host = at::stack(sums).cpu();
    const auto steps = std::exchange(unread_, {});
    for (std::size_t i = 0; i < steps.size(); ++i) {
      check_loss(host[static_cast<std::int64_t>(i)][0].item<double>(), steps[i].first);
    }
  }
  StepTimes times;
  times.data_seconds = std::min(idle_.take(), std::exchange(waited_, 0.0));
  times.compute_seconds = computing_.take();
  times.update_seconds = replica_.take_update_seconds();
  const double both = exchanging_.take() - std::exchange(paused_, 0.0);
  times.exchange_seconds = std::max(0.0, both - times.update_seconds);
  return times;
}

void TrainingStep::check_loss(double loss, const methods::StepInfo& info) const {
  if (std::isfinite(loss)) return;
  const char* what = std::isnan(loss) ? "not a number" : "infinite";
  if (info.step == 0 || info.lr == 0) {
    throw RunError(fmt::format(
        "the loss is {} at step {}, {}, so the learning rate is not the cause: look for damaged "
        "inputs with `cohort data verify`, and at the initial weights if --init gave them.",
        what, info.step, info.step == 0 ? "before any update" : "where --lr is 0"));
  }
  throw RunError(fmt::format(
      "the loss is {} at step {}: training has diverged. Try a lower --lr (it was {:.4g}), "
      "--warmup-epochs 1, or --clip-norm 1; `cohort data verify` rules out damaged inputs.",
      what, info.step, info.lr));
}

}  // namespace cohort::engine
