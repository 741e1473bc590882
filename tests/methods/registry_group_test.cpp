// What every method for several workers promises groups of 2 and of 4, over the whole registry.
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "methods/group.h"
#include "methods/settings.h"

namespace cohort::methods {
namespace {

std::vector<std::string> methods_of_several() {
  std::vector<std::string> names;
  for (const auto& entry : methods().entries()) {
    if (entry.traits.workers != MethodTraits::Workers::kOneAlone) names.push_back(entry.name);
  }
  return names;
}

// What a rank's replica and method remember, by name: kept, or put back.
class Memory final : public StateVisitor {
 public:
  bool restoring = false;

  void tensor(const std::string& name, const at::Tensor& value) override {
    const c10::NoGradGuard no_grad;
    if (restoring) {
      at::Tensor(value).copy_(tensors_.at(name));
    } else {
      tensors_[name] = value.detach().clone();
    }
  }
  void number(const std::string& name, std::int64_t& value) override {
    restoring ? value = numbers_.at(name) : numbers_[name] = value;
  }
  void visit(Replica& replica, UpdateMethod& method) {
    replica.visit_model(*this);
    replica.visit_state(*this);
    method.visit_state(*this);
  }

 private:
  std::map<std::string, at::Tensor> tensors_;
  std::map<std::string, std::int64_t> numbers_;
};

struct GroupOutcome {
  std::vector<at::Tensor> parameters;
  std::vector<Memory> memories;
  std::vector<double> first_losses;  // of each rank
  std::vector<double> last_losses;
};

constexpr double kGroupRate = 0.02;
constexpr Step kGroupEvery = 3;  // steps between exchanges, of methods that can take several

class EveryMethodInAGroup : public testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  static const std::string& method() { return std::get<0>(GetParam()); }
  static int ranks() { return std::get<1>(GetParam()); }
  static const MethodTraits& traits() { return traits_of(method()); }

  static std::unique_ptr<UpdateMethod> make(Channels& channels, Rank rank) {
    MethodOptions options = channels.options(rank);
    options.gossip.method = method();
    options.gossip.compressor = uses(method(), "compressor") ? "fp16" : "none";
    options.own = {{"average-every", kGroupEvery}, {"free-trial-steps", std::int64_t{2}}};
    if (traits().servers == MethodTraits::Servers::kParameters) {
      channels.serve(options, replica_options(), kGroupRate);
    } else if (traits().servers == MethodTraits::Servers::kBestModel) {
      channels.serve_best(options);
    }
    return methods().make(method(), options);
  }

  static ReplicaOptions replica_options() { return {.optimizer_options = {.momentum = 0.5}}; }

  // Steps `from` to `to`, each on the rank's own few batches by turns, going on from `before`.
  static GroupOutcome train(Step from, Step to, std::vector<Memory> before = {}) {
    GroupOutcome outcome;
    const auto size = static_cast<std::size_t>(ranks());
    outcome.parameters.resize(size);
    outcome.memories.resize(size);
    outcome.first_losses.resize(size);
    outcome.last_losses.resize(size);
    Channels channels(ranks());
    run_group(channels, [&](Rank rank) {
      const auto index = static_cast<std::size_t>(rank);
      TinyModel model(static_cast<std::uint64_t>(rank + 1));
      Replica replica(model, replica_options());
      const auto made = make(channels, rank);
      made->start(replica);
      if (!before.empty()) {
        before[index].restoring = true;
        before[index].visit(replica, *made);
      }
      const auto loss = [&](Step step) {
        const Rank whose = traits().sees_all_data ? 0 : rank;
        return tiny_loss(model, tiny_batch(100 * static_cast<std::uint64_t>(whose + 1) +
                                           static_cast<std::uint64_t>(step % 4)));
      };
      for (Step step = from; step < to; ++step) {
        replica.set_gradient_listener(listener_of(replica, *made));
        const bool probe = made->before_step(replica) == StepKind::kProbe;
        replica.begin_step();
        replica.begin_pass(true);
        const at::Tensor found = loss(step);
        if (!probe) found.backward();
        replica.finish_backward();
        made->update(replica, {step, kGroupRate, found.item<double>()});
        if (step == from) outcome.first_losses[index] = found.item<double>();
        outcome.last_losses[index] = found.item<double>();
      }
      replica.set_gradient_listener(nullptr);
      made->materialize(replica);
      outcome.memories[index].visit(replica, *made);
      made->finish(replica, Ending::kComplete);
      made->materialize(replica);
      outcome.parameters[index] = replica.parameters().clone();
    });
    return outcome;
  }
};

INSTANTIATE_TEST_SUITE_P(Registry, EveryMethodInAGroup,
                         testing::Combine(testing::ValuesIn(methods_of_several()),
                                          testing::Values(2, 4)));

TEST_P(EveryMethodInAGroup, Learns) {
  const GroupOutcome outcome = train(0, 90);
  for (int rank = 0; rank < ranks(); ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    EXPECT_LT(outcome.last_losses[index], 0.8 * outcome.first_losses[index]) << "rank " << rank;
  }
}

TEST_P(EveryMethodInAGroup, HasTheModelsThatItsTraitsSay) {
  const GroupOutcome outcome = train(0, 4 * kGroupEvery);
  double apart = 0;
  for (const at::Tensor& each : outcome.parameters) {
    EXPECT_TRUE(each.isfinite().all().item<bool>());
    apart = std::max(apart, (each - outcome.parameters[0]).abs().max().item<double>());
  }
  if (traits().models == MethodTraits::Models::kOne) {
    EXPECT_EQ(apart, 0);
  } else if (traits().models == MethodTraits::Models::kAveraged) {
    EXPECT_LT(apart, 0.1);
  }
}

TEST_P(EveryMethodInAGroup, GoesOnFromWhatItRememberedToTheSameBits) {
  if (!traits().in_step()) GTEST_SKIP() << "its servers keep what it goes on from";
  // Of workers without a state of their own only at the end of a round, when they are equal.
  const Step stop = traits().own_state ? 2 * kGroupEvery + 1 : 2 * kGroupEvery;
  const Step end = 4 * kGroupEvery;
  const GroupOutcome half = train(0, stop);
  const GroupOutcome resumed = train(stop, end, half.memories);
  const GroupOutcome straight = train(0, end);
  for (std::size_t rank = 0; rank < straight.parameters.size(); ++rank) {
    EXPECT_TRUE(resumed.parameters[rank].equal(straight.parameters[rank])) << "rank " << rank;
  }
}

}  // namespace
}  // namespace cohort::methods
