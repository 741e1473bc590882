// The contract of UpdateMethod over the whole registry, and over a fake that sends nothing late.
#include "methods/update_method.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "methods/group.h"
#include "methods/tiny_model.h"

namespace cohort::methods {
namespace {

// Counts what it is told; a second implementation that keeps the interface honest.
class CountingMethod final : public UpdateMethod, public OverlappedExchange {
 public:
  void start(Replica&) override { ++starts; }
  StepKind before_step(Replica&) override { return StepKind::kTrain; }
  void gradients_ready(Replica&, Range range) override { elements += range.size; }
  void update(Replica& replica, const StepInfo& info) override {
    replica.apply_gradients(info.lr);
    ++updates;
  }
  void materialize(Replica&) override { ++materialized; }
  void finish(Replica&, Ending) override {}
  void visit_state(StateVisitor& visitor) override { visitor.number("updates_seen", updates); }

  int starts = 0;
  int materialized = 0;
  std::int64_t elements = 0;
  std::int64_t updates = 0;
};

void train(models::Model& model, Replica& replica, UpdateMethod& method, Step first, Step last) {
  replica.set_gradient_listener(listener_of(replica, method));
  for (Step step = first; step < last; ++step) {
    method.before_step(replica);
    replica.begin_step();
    replica.begin_pass(true);
    tiny_loss(model, tiny_batch(static_cast<std::uint64_t>(step))).backward();
    replica.finish_backward();
    method.update(replica, {step, 0.1});
  }
  method.materialize(replica);
  replica.set_gradient_listener(nullptr);
}

at::Tensor parameters_after(UpdateMethod& method, Step steps) {
  TinyModel model;
  Replica replica(model, {.weight_decay = 0.01});
  method.start(replica);
  train(model, replica, method, 0, steps);
  return replica.parameters().clone();
}

class EveryMethod : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Registry, EveryMethod, testing::ValuesIn(methods().names()));

TEST_P(EveryMethod, WithOneRankEqualsPlainTrainingBitForBit) {
  const auto method = methods().make(GetParam(), MethodOptions{});
  CountingMethod plain;
  EXPECT_TRUE(parameters_after(*method, 6).equal(parameters_after(plain, 6)));
}

TEST_P(EveryMethod, GivesTheSameBitsTwice) {
  const auto first = methods().make(GetParam(), MethodOptions{});
  const auto second = methods().make(GetParam(), MethodOptions{});
  EXPECT_TRUE(parameters_after(*first, 4).equal(parameters_after(*second, 4)));
}

TEST_P(EveryMethod, MaySettleAtAnyTimeAndMoreThanOnce) {
  const auto method = methods().make(GetParam(), MethodOptions{});
  TinyModel model;
  Replica replica(model, {});
  method->start(replica);
  train(model, replica, *method, 0, 2);
  const at::Tensor materialized = replica.parameters().clone();
  method->materialize(replica);
  EXPECT_TRUE(replica.parameters().equal(materialized));
}

TEST(UpdateMethod, HearsOfEveryGradientOnceAStep) {
  CountingMethod method;
  parameters_after(method, 3);
  TinyModel model;
  EXPECT_EQ(method.elements, 3 * model.store().numel());
  EXPECT_EQ(method.updates, 3);
  EXPECT_EQ(method.starts, 1);
}

TEST(Dgc, ClipsEveryTensorAlsoOfOneRankAlone) {
  constexpr double kLongest = 0.01;
  constexpr double kRate = 0.1;  // that of train()
  MethodOptions options;
  options.own["clip-tensor"] = kLongest;
  const auto method = methods().make("dgc", options);
  TinyModel model;
  Replica replica(model, {});
  const at::Tensor before = replica.parameters().clone();
  method->start(replica);
  train(model, replica, *method, 0, 1);
  const at::Tensor moved = replica.parameters() - before;
  int clipped = 0;
  for (const Replica::Segment& segment : replica.segments()) {
    const double length =
        moved.narrow(0, segment.range.begin, segment.range.size).norm().item<double>();
    EXPECT_LE(length, 1.001 * kRate * kLongest) << segment.name;
    if (length > 0.999 * kRate * kLongest) ++clipped;
  }
  EXPECT_GE(clipped, 2);
}

TEST(Local, RefusesMoreThanOneWorker) {
  EXPECT_THROW(methods().make("local", {.rank = 0, .size = 2}), ConfigError);
}

}  // namespace
}  // namespace cohort::methods
