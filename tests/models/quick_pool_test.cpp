#include "models/quick_pool.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/max_pool2d.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace cohort::models {
namespace {

at::Tensor noise(std::vector<std::int64_t> shape) {
  return at::empty(shape, at::MemoryFormat::ChannelsLast)
      .normal_(0, 1, at::detail::createCPUGenerator(5));
}

// As numbers, with not-a-numbers in the same places.
bool same(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return false;
  const at::Tensor left = a.contiguous();
  const at::Tensor right = b.contiguous();
  for (std::int64_t i = 0; i < left.numel(); ++i) {
    const float x = left.data_ptr<float>()[i];
    const float y = right.data_ptr<float>()[i];
    if (!(x == y || (std::isnan(x) && std::isnan(y)))) return false;
  }
  return true;
}

TEST(QuickPool, GivesWhatLibtorchGives) {
  const c10::NoGradGuard no_grad;
  for (const auto& shape : std::vector<std::vector<std::int64_t>>{
           {1, 2, 2, 2}, {3, 20, 24, 24}, {2, 50, 9, 7}, {5, 3, 2, 11}, {9, 17, 13, 4}}) {
    const at::Tensor input = noise(shape);
    ASSERT_TRUE(suits_quick_pool(input));
    const at::Tensor pooled = quick_max_pool(input);
    EXPECT_TRUE(same(pooled, at::max_pool2d(input, {2, 2}, {2, 2})));
    EXPECT_TRUE(pooled.is_contiguous(at::MemoryFormat::ChannelsLast));
  }
}

TEST(QuickPool, LetsNotANumberThrough) {
  const c10::NoGradGuard no_grad;
  for (std::int64_t place = 0; place < 4; ++place) {
    at::Tensor input = noise({1, 3, 4, 4});
    input.select(2, place / 2).select(2, place % 2).fill_(std::nanf(""));
    EXPECT_TRUE(same(quick_max_pool(input), at::max_pool2d(input, {2, 2}, {2, 2}))) << place;
    EXPECT_TRUE(quick_max_pool(input).isnan().any().item<bool>()) << place;
  }
}

TEST(QuickPool, LeavesOtherTensorsToLibtorch) {
  EXPECT_FALSE(suits_quick_pool(noise({1, 3, 4, 4}).requires_grad_(true)));
  EXPECT_FALSE(suits_quick_pool(noise({1, 3, 4, 4}).contiguous()));
  EXPECT_FALSE(suits_quick_pool(noise({1, 3, 4, 4}).to(at::kDouble)));
  EXPECT_FALSE(suits_quick_pool(noise({1, 3, 1, 4})));
}

}  // namespace
}  // namespace cohort::models
