#include "engine/training_step.h"

#include <c10/core/GradMode.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

#include "core/clock.h"
#include "core/error.h"
#include "core/random.h"
#include "engine/device.h"
#include "engine/generator.h"

namespace cohort {
namespace {

// The time since it was made, without that in which another worker made this one wait.
class ExchangeWatch {
 public:
  explicit ExchangeWatch(const PauseClock* pauses)
      : pauses_(pauses), paused_(paused()), start_(Clock::now()) {}

  double seconds() const {
    const double passed = seconds_between(start_, Clock::now());
    return std::max(0.0, passed - (paused() - paused_));
  }

 private:
  double paused() const { return pauses_ != nullptr ? pauses_->seconds() : 0; }

  const PauseClock* pauses_;
  double paused_;
  Clock::time_point start_;
};

}  // namespace

TrainingStep::TrainingStep(Model& model, Replica& replica, UpdateMethod& method,
                           const TrainingStepOptions& options)
    : model_(model), replica_(replica), method_(method), options_(options) {
  model_.store().set_generator(make_generator(options_.seed, options_.device));
  replica_.set_gradient_listener([this](Range range) { method_.gradients_ready(replica_, range); });
}

TrainingStep::~TrainingStep() { replica_.set_gradient_listener(nullptr); }

void TrainingStep::run(const BatchTensors& batch, std::int64_t samples_of_all, const StepInfo& info,
                       ClassificationSums& sums, StepTimes& times) {
  info_ = info;
  StepKind kind = StepKind::kTrain;
  {
    const ExchangeWatch watch(options_.pauses);
    kind = method_.before_step(replica_);
    times.exchange_seconds += watch.seconds();
  }
  {
    const StopWatch watch(times.compute_seconds);
    if (kind == StepKind::kProbe) {
      probe(batch, sums);
    } else {
      gradients_of(batch, samples_of_all, sums);
    }
    synchronize(options_.device);
  }
  const double updated_before = replica_.update_seconds();
  const ExchangeWatch watch(options_.pauses);
  method_.update(replica_, info_);
  synchronize(options_.device);
  const double both = watch.seconds();
  const double update =
      options_.device.is_cpu() ? replica_.update_seconds() - updated_before : both;
  times.update_seconds += update;
  times.exchange_seconds += both - update;
}

// Only looked at, not learnt from.
void TrainingStep::probe(const BatchTensors& batch, ClassificationSums& sums) {
  const c10::NoGradGuard no_grad;
  seed_dropout();
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
  for (std::int64_t pass = 0; pass < passes; ++pass) {
    replica_.begin_pass(pass + 1 == passes);
    const std::int64_t begin = std::min(pass * pass_samples, samples);
    const std::int64_t size = std::min(pass_samples, samples - begin);
    const BatchTensors part = passes == 1 ? batch
                                          : BatchTensors{batch.inputs.narrow(0, begin, size),
                                                         batch.labels.narrow(0, begin, size)};
    if (size == 0) {
      empty_pass(part);
    } else {
      one_pass(part, weight * (static_cast<double>(size) / static_cast<double>(samples)), sums);
    }
  }
  replica_.finish_backward();
}

void TrainingStep::one_pass(const BatchTensors& batch, double share, ClassificationSums& sums) {
  const at::Tensor logits = model_.forward(batch.inputs);
  const at::Tensor loss =
      classification_loss(model_, logits, batch.labels, options_.label_smoothing);
  if (options_.device.is_cpu()) {
    check_loss(loss.item<double>(), info_);
  } else {
    unread_.emplace_back(info_, loss.detach());
  }
  sums.add(loss, logits, batch.labels);
  // The gradient of the whole batch's mean is the share-weighted sum over its parts.
  (share == 1.0 ? loss : loss.mul(share)).backward();
}

void TrainingStep::empty_pass(const BatchTensors& batch) {
  at::Tensor sum = model_.forward(batch.inputs).sum();
  // Their layers exchange too.
  for (const AuxiliaryOutput& output : model_.auxiliary()) sum = sum.add(output.logits.sum());
  sum.mul(0.0).backward();
}

void TrainingStep::check_losses() {
  for (const auto& [info, loss] : unread_) check_loss(loss.item<double>(), info);
  unread_.clear();
}

void TrainingStep::check_loss(double loss, const StepInfo& info) const {
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

}  // namespace cohort
