#include "methods/arena_update.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "methods/tensor_optimizer.h"

namespace cohort::methods {
namespace {

// The same in every run: where decay and gradient cancel, Adam makes much of the last bit.
at::Tensor noise(std::uint64_t seed, std::int64_t n) {
  return at::empty({n}).normal_(0, 1, at::detail::createCPUGenerator(seed));
}

struct Fixture {
  explicit Fixture(std::size_t slot_count, std::int64_t n = 200000)
      : parameters(noise(1, n)), gradients(noise(2, n)) {
    for (std::size_t i = 0; i < slot_count; ++i) slots.push_back(at::zeros({n}));
  }
  Fixture(const Fixture& other)
      : parameters(other.parameters.clone()), gradients(other.gradients.clone()) {
    for (const at::Tensor& slot : other.slots) slots.push_back(slot.clone());
  }
  at::Tensor parameters, gradients;
  at::Tensor moves = at::zeros({parameters.numel()});
  std::vector<at::Tensor> slots;
};

class EveryOptimizer : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Registry, EveryOptimizer,
                         testing::ValuesIn(optimizers::optimizers().names()));

TEST_P(EveryOptimizer, HasATwinForDevicesThatComputesTheSame) {
  const optimizers::OptimizerOptions options{.momentum = 0.9, .nesterov = true};
  const ArenaUpdate update(GetParam(), options, at::kCPU);
  Fixture fused(update.slots().size());
  Fixture twin(fused);
  for (Step step = 0; step < 4; ++step) {
    const optimizers::UpdateScalars scalars{
        .lr = 0.01, .weight_decay = 0.1, .gradient_scale = 0.5, .step = step};
    update({fused.parameters, fused.gradients, fused.slots, fused.moves}, {0, 200000}, scalars);
    find_tensor_update(GetParam())({twin.parameters, twin.gradients, twin.slots, twin.moves},
                                   options, scalars);
  }
  EXPECT_LT((fused.parameters - twin.parameters).abs().max().item<double>(), 1e-5);
  EXPECT_LT((fused.moves - twin.moves).abs().max().item<double>(), 1e-5);
  EXPECT_GT(fused.moves.abs().max().item<double>(), 1e-3);
}

TEST_P(EveryOptimizer, TouchesOnlyItsRange) {
  const ArenaUpdate update(GetParam(), optimizers::OptimizerOptions{}, at::kCPU);
  Fixture arenas(update.slots().size());
  const at::Tensor before = arenas.parameters.clone();
  update({arenas.parameters, arenas.gradients, arenas.slots}, {1000, 5}, {.lr = 0.1});
  const at::Tensor changed = arenas.parameters.ne(before);
  EXPECT_EQ(changed.sum().item<std::int64_t>(), 5);
  EXPECT_EQ(changed.narrow(0, 1000, 5).sum().item<std::int64_t>(), 5);
}

TEST(ArenaNorm, IsTheEuclideanNormWithAnyNumberOfThreads) {
  const at::Tensor values = noise(3, 300001);
  const double expected = values.to(at::kDouble).norm().item<double>();
  at::set_num_threads(1);
  const double one = arena_norm(values);
  at::set_num_threads(2);
  EXPECT_EQ(arena_norm(values), one);
  at::set_num_threads(1);
  EXPECT_NEAR(one, expected, 1e-9 * expected);
}

}  // namespace
}  // namespace cohort::methods
