// The passes over a GPU's arenas, beside the same on the CPU.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>

#include "engine/generator.h"
#include "methods/arena_update.h"
#include "methods/gradient_gather.h"
#include "methods/kernel_update.h"

namespace cohort {
namespace {

const at::Device kGpu(at::kCUDA, 0);
constexpr std::int64_t kSize = 300007;  // no whole number of vectors

at::Tensor noise(std::int64_t size, std::uint64_t seed) {
  return at::empty({size}).normal_(0, 1, engine::make_generator(seed, at::kCPU));
}

struct Vectors {
  at::Tensor parameters, gradients, moves;
  std::vector<at::Tensor> slots;

  methods::Arenas arenas() const { return {parameters, gradients, slots, moves}; }
};

class EveryKernel : public testing::TestWithParam<std::string> {};

TEST_P(EveryKernel, MakesTheBitsOfTheCpu) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "needs a GPU";
  for (const bool nesterov : {false, true}) {
    const optimizers::OptimizerOptions options{.momentum = 0.9, .nesterov = nesterov};
    const methods::ArenaUpdate on_cpu(GetParam(), options, at::kCPU);
    Vectors cpu{noise(kSize, 1), noise(kSize, 2), at::zeros({kSize}), {}};
    Vectors gpu{cpu.parameters.to(kGpu), cpu.gradients.to(kGpu), cpu.moves.to(kGpu), {}};
    for (std::size_t i = 0; i < on_cpu.slots().size(); ++i) {
      cpu.slots.push_back(at::zeros({kSize}));
      gpu.slots.push_back(cpu.slots.back().to(kGpu));
    }
    for (Step step = 0; step < 4; ++step) {
      const optimizers::UpdateScalars scalars{
          .lr = 0.01, .weight_decay = 0.1, .gradient_scale = 0.5, .step = step};
      on_cpu(cpu.arenas(), {0, kSize}, scalars);
      methods::find_kernel_update(GetParam())(gpu.arenas(), options, scalars);
    }
    const double unequal =
        gpu.parameters.cpu().ne(cpu.parameters).sum().item<double>() / double{kSize};
    // Adam's square root and division are rounded alike; its CPU loop may fuse a product and a sum.
    EXPECT_LE(unequal, GetParam() == "sgd" ? 0.0 : 0.5);
    EXPECT_LT((gpu.parameters.cpu() - cpu.parameters).abs().max().item<double>(), 1e-6);
    EXPECT_LT((gpu.moves.cpu() - cpu.moves).abs().max().item<double>(), 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, EveryKernel, testing::Values("sgd", "adam", "adamw"));

TEST(GradientGather, PutsEachGradientIntoItsPlaceAndAddsToWhatIsThere) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "needs a GPU";
  const methods::GradientGather probe(kGpu);
  ASSERT_TRUE(probe.late());
  // More parts than one launch takes, of sizes from 1 to several pieces.
  const at::Tensor arena = noise(4 << 20, 3).to(kGpu);
  at::Tensor expected = arena.clone();
  methods::GradientGather gather(kGpu);
  std::int64_t begin = 0;
  for (int i = 0; begin + 40000 < arena.numel(); ++i) {
    const std::int64_t size = 1 + (i * 7919) % 39000;
    const at::ScalarType type = i % 2 == 0 ? at::kFloat : at::kBFloat16;
    const at::Tensor gradient = noise(size, 10 + i).to(kGpu).to(type);
    const at::Tensor place = expected.narrow(0, begin, size);
    ASSERT_TRUE(gather.takes(gradient, arena.narrow(0, begin, size)));
    const bool add = i % 3 == 0;
    place.copy_(add ? place + gradient.to(at::kFloat) : gradient.to(at::kFloat));
    gather.add({gradient, {begin, size}, add});
    begin += (size + 63) / 64 * 64;
  }
  gather.collect(arena);
  EXPECT_TRUE(arena.equal(expected));
}

}  // namespace
}  // namespace cohort
