// A memory of what was not sent, around codecs of groups.
#include "methods/error_feedback.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "collectives/shared_memory.h"
#include "compressors/registry.h"

namespace cohort::methods {
namespace {

constexpr std::size_t kNumel = 130;

std::vector<float> gaussian(int seed) {
  std::mt19937 engine(static_cast<unsigned>(seed));
  std::normal_distribution<float> normal;
  std::vector<float> values(kNumel);
  for (float& value : values) value = normal(engine);
  return values;
}

class FindsTheMemory final : public StateVisitor {
 public:
  void tensor(const std::string& name, const at::Tensor& tensor) override {
    if (name == "compressed.error") memory = tensor;
  }
  void number(const std::string&, std::int64_t&) override {}

  at::Tensor memory;
};

TEST(ErrorFeedback, LosesNothingOverTime) {
  constexpr int kSteps = 200;
  for (const std::string& name : compressors::compressors().names()) {
    SCOPED_TRACE(name);
    const auto group = std::move(collectives::make_shared_memory_group(1).front());
    MethodOptions options;
    options.gradients = group.get();
    options.gossip.compression.ratio = 0.9;
    options.gossip.compression.biased = true;
    const auto codec =
        feed_errors_back(make_mean_codec(options, {{0, 100}, {100, 30}}, name), kNumel);
    std::vector<double> moves(kNumel);
    std::vector<double> received(kNumel);
    std::vector<float> sent(kNumel);
    std::vector<float> mean(kNumel);
    FindsTheMemory state;
    codec->visit_state(state);
    ASSERT_EQ(state.memory.numel(), static_cast<std::int64_t>(kNumel));
    const float* memory = state.memory.data_ptr<float>();
    double largest = 0;
    for (int step = 0; step < kSteps; ++step) {
      const std::vector<float> move = gaussian(step);
      codec->exchange(move, StepInfo{step, 0.1}, sent, mean);
      EXPECT_EQ(sent, mean);  // of one rank
      for (std::size_t i = 0; i < kNumel; ++i) {
        moves[i] += move[i];
        received[i] += sent[i];
        largest = std::max<double>(largest, std::abs(memory[i]) + std::abs(sent[i]));
      }
    }
    for (std::size_t i = 0; i < kNumel; ++i) {
      // Every step rounds the memory twice, to a 2^-24th of its magnitude.
      EXPECT_NEAR(received[i] + memory[i], moves[i], kSteps * 0x1.0p-22 * (10 + largest));
    }
    if (name == "none") continue;
    EXPECT_GT(state.memory.abs().max().item<float>(), 0);
  }
}

}  // namespace
}  // namespace cohort::methods
