#include "methods/replica.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "methods/tiny_model.h"

namespace cohort::methods {
namespace {

using testing::Each;

// Gradients by name, computed by autograd alone.
std::map<std::string, at::Tensor> reference_gradients(const std::vector<TinyBatch>& batches) {
  TinyModel model;
  for (const TinyBatch& batch : batches) tiny_loss(model, batch).backward();
  std::map<std::string, at::Tensor> gradients;
  for (const models::Parameter& parameter : model.store().parameters()) {
    gradients[parameter.name] = parameter.value.grad();
  }
  return gradients;
}

at::Tensor segment_of(const at::Tensor& arena, const Replica::Segment& segment) {
  return arena.as_strided(segment.shape, segment.strides, segment.range.begin);
}

void run_passes(models::Model& model, Replica& replica, const std::vector<TinyBatch>& batches) {
  replica.begin_step();
  for (std::size_t i = 0; i < batches.size(); ++i) {
    replica.begin_pass(i + 1 == batches.size());
    tiny_loss(model, batches[i]).backward();
  }
  replica.finish_backward();
}

class ReplicaLayout : public testing::TestWithParam<bool> {
 protected:
  ReplicaOptions options() const { return {.channels_last = GetParam(), .weight_decay = 0.1}; }
};

INSTANTIATE_TEST_SUITE_P(Formats, ReplicaLayout, testing::Bool());

TEST_P(ReplicaLayout, KeepsEveryValueAndCoversTheArenaInBackwardOrder) {
  TinyModel before;
  TinyModel model;
  Replica replica(model, options());
  std::int64_t offset = 0;
  std::size_t index = replica.segments().size();
  for (const Replica::Segment& segment : replica.segments()) {
    EXPECT_EQ(segment.range.begin, offset);
    offset = segment.range.end();
    const models::Parameter& original = before.store().parameters()[--index];
    EXPECT_EQ(segment.name, original.name);
    EXPECT_TRUE(segment_of(replica.parameters(), segment).equal(original.value.detach()));
  }
  EXPECT_EQ(offset, replica.numel());
  EXPECT_EQ(replica.numel(), before.store().numel());
}

TEST_P(ReplicaLayout, GathersTheGradientsAutogradComputesAndZeroForTheUnused) {
  const std::vector<TinyBatch> batches = {tiny_batch(1)};
  const auto expected = reference_gradients(batches);
  TinyModel model;
  Replica replica(model, options());
  replica.gradients().fill_(7);  // what an earlier step left
  run_passes(model, replica, batches);
  for (const Replica::Segment& segment : replica.segments()) {
    const at::Tensor found = segment_of(replica.gradients(), segment);
    const at::Tensor& wanted = expected.at(segment.name);
    if (wanted.defined()) {
      EXPECT_LT((found - wanted).abs().max().item<float>(), 1e-6) << segment.name;
    } else {
      EXPECT_EQ(found.abs().max().item<float>(), 0) << segment.name;
    }
  }
}

TEST_P(ReplicaLayout, AddsUpTheGradientsOfSeveralPasses) {
  const std::vector<TinyBatch> batches = {tiny_batch(1), tiny_batch(2), tiny_batch(3)};
  const auto expected = reference_gradients(batches);
  TinyModel model;
  Replica replica(model, options());
  run_passes(model, replica, batches);
  for (const Replica::Segment& segment : replica.segments()) {
    if (!expected.at(segment.name).defined()) continue;
    const at::Tensor found = segment_of(replica.gradients(), segment);
    EXPECT_LT((found - expected.at(segment.name)).abs().max().item<float>(), 1e-5) << segment.name;
  }
}

TEST(Replica, TellsTheListenerOfEveryRangeOnceAndOnlyInTheLastPass) {
  TinyModel model;
  Replica replica(model, {});
  std::vector<int> told(static_cast<std::size_t>(replica.numel()));
  bool last = false;
  replica.set_gradient_listener([&](Range range) {
    EXPECT_TRUE(last);
    for (std::int64_t i = range.begin; i < range.end(); ++i) ++told[static_cast<std::size_t>(i)];
  });
  replica.begin_step();
  replica.begin_pass(false);
  tiny_loss(model, tiny_batch(1)).backward();
  last = true;
  replica.begin_pass(true);
  tiny_loss(model, tiny_batch(2)).backward();
  replica.finish_backward();
  EXPECT_THAT(told, Each(1));
}

TEST(Replica, SparesBatchNormalisationFromDecayWhenAsked) {
  for (const bool decay : {true, false}) {
    TinyModel model;
    Replica replica(
        model,
        {.optimizer_options = {.momentum = 0}, .weight_decay = 0.5, .decay_normalization = decay});
    const at::Tensor before = replica.parameters().clone();
    replica.begin_step();
    replica.finish_backward();  // all gradients are zero: only decay moves anything
    replica.apply_gradients(0.1);
    for (const Replica::Segment& segment : replica.segments()) {
      const bool spared = !decay && segment.kind == models::ParameterKind::kNormalization;
      const at::Tensor expected = segment_of(before, segment) * (spared ? 1.0 : 0.95);
      EXPECT_LT((segment_of(replica.parameters(), segment) - expected).abs().max().item<float>(),
                1e-6)
          << segment.name;
    }
  }
}

TEST(Replica, ClipsTheGradientToItsLongestAllowedLength) {
  for (const double limit : {0.5, 1e9}) {
    TinyModel model;
    Replica replica(model, {.optimizer_options = {.momentum = 0}, .clip_norm = limit});
    run_passes(model, replica, {tiny_batch(1)});
    const double norm = replica.gradients().norm().item<double>();
    ASSERT_GT(norm, 0.5);
    const at::Tensor before = replica.parameters().clone();
    replica.apply_gradients(1.0);
    EXPECT_NEAR((replica.parameters() - before).norm().item<double>(), std::min(norm, limit), 1e-4);
  }
}

TEST(Replica, StepsAsTorchWouldOverManyBatches) {
  // The same model by hand: autograd's own gradients and the textbook update.
  TinyModel hand;
  std::map<std::string, at::Tensor> momentum;
  TinyModel model;
  Replica replica(model, {.channels_last = true, .weight_decay = 0.01});
  for (std::uint64_t step = 0; step < 5; ++step) {
    tiny_loss(hand, tiny_batch(step)).backward();
    for (models::Parameter& parameter : hand.store().parameters()) {
      at::Tensor value = parameter.value.detach();
      const at::Tensor& grad = parameter.value.grad();
      const at::Tensor full = (grad.defined() ? grad : at::zeros_like(value)) + 0.01 * value;
      at::Tensor& m = momentum[parameter.name];
      m = m.defined() ? 0.9 * m + full : full;
      value.sub_(0.1 * m);
      parameter.value.mutable_grad().reset();
    }
    run_passes(model, replica, {tiny_batch(step)});
    replica.apply_gradients(0.1);
  }
  for (std::size_t i = 0; i < hand.store().parameters().size(); ++i) {
    const at::Tensor difference =
        hand.store().parameters()[i].value.detach() - model.store().parameters()[i].value.detach();
    EXPECT_LT(difference.abs().max().item<float>(), 1e-5);
  }
}

TEST(Replica, LeavesAUsableModelBehind) {
  TinyModel model;
  { const Replica replica(model, {.channels_last = true}); }
  tiny_loss(model, tiny_batch(1)).backward();
  EXPECT_TRUE(model.store().parameters().front().value.grad().defined());
}

}  // namespace
}  // namespace cohort::methods
