#include "methods/local_rounds.h"

#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <utility>

#include "methods/bucket_exchange.h"
#include "methods/replica_comparison.h"
#include "methods/shared_settings.h"
#include "methods/statistics.h"

namespace cohort::methods {
namespace {

class LocalRounds final : public UpdateMethod {
 public:
  LocalRounds(const MethodOptions& options, LocalRoundsOptions rounds)
      : options_(options),
        rounds_(std::move(rounds)),
        every_(steps_between_exchanges(options.own, rounds_.average_every)) {}

  void start(Replica& replica) override {
    if (alone()) return;
    require_same_model(replica, *options_.control, deadline());
    copy_from_first_rank(replica, *options_.control, deadline());
    const c10::NoGradGuard no_grad;
    outer_ = {replica.parameters().clone(), at::zeros_like(replica.parameters())};
  }

  void update(Replica& replica, const StepInfo& info) override {
    replica.apply_gradients(info.lr);
    if (alone() || (info.step + 1) % every_ != 0) return;
    const c10::NoGradGuard no_grad;
    options_.doing(Phase::kExchanging);
    average(replica.parameters());
    if (rounds_.slots == LocalRoundsOptions::Slots::kAveraged) {
      for (const at::Tensor& slot : replica.slots()) average(slot);
    }
    options_.doing(Phase::kUpdating);
    if (rounds_.slots == LocalRoundsOptions::Slots::kZeroed) {
      for (const at::Tensor& slot : replica.slots()) slot.zero_();
    }
    rounds_.outer(outer_, outer_.x.sub(replica.parameters()), info.lr);
    replica.parameters().copy_(outer_.x);
    compare_when_due(replica, options_, info.step);
  }

  void materialize(Replica& replica) override {
    if (!alone()) share_statistics(replica, options_);
  }

  void visit_state(StateVisitor& visitor) override {
    if (!outer_.x.defined()) return;
    visitor.tensor("local_rounds.x", outer_.x);
    visitor.tensor("local_rounds.momentum", outer_.momentum);
  }

 private:
  bool alone() const { return options_.size == 1; }
  Deadline deadline() const { return deadline_in(options_.patience); }

  void average(const at::Tensor& values) {
    sum_over_ranks(*options_.gradients, options_.gradients_on_device, values, deadline());
    values.div_(options_.size);
  }

  MethodOptions options_;
  LocalRoundsOptions rounds_;
  const Step every_;  // steps of a round
  OuterState outer_;  // undefined before start() and alone
};

}  // namespace

std::unique_ptr<UpdateMethod> make_local_rounds(const MethodOptions& options,
                                                LocalRoundsOptions rounds) {
  return std::make_unique<LocalRounds>(options, std::move(rounds));
}

MethodTraits local_rounds_traits(std::int64_t average_every, std::vector<config::ConfigField> own) {
  own.push_back(average_every_field());
  own.push_back(check_replicas_field());
  return {.own_state = true, .average_every = average_every, .settings = std::move(own)};
}

}  // namespace cohort::methods
