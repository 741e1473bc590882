// Error feedback around every registered compressor.
#include "compressors/error_feedback.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "compressors/variants.h"
#include "compressors/vectors.h"

namespace cohort {
namespace {

class ErrorFeedbackConformance : public testing::TestWithParam<Variant> {
 protected:
  static ModelCodec codec(const std::vector<std::int64_t>& sizes) {
    return ModelCodec(GetParam().make(3), tensors_of(sizes));
  }
};

TEST_P(ErrorFeedbackConformance, LosesNothingOverTime) {
  constexpr std::size_t kNumel = 130;
  constexpr int kSteps = 200;
  ModelCodec codec = this->codec({100, 30});
  if (codec.contraction() == 0) return;  // the memory may grow without bound
  ErrorFeedback feedback(codec);
  std::vector<double> inputs(kNumel);
  std::vector<double> received(kNumel);
  std::vector<float> sent(kNumel);
  std::vector<float> decoded(kNumel);
  Bytes wire;
  double largest = 0;
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<float> input = gaussian(kNumel, step);
    feedback.encode(input, 4, step, wire, sent);
    codec.decode(wire, 4, step, decoded);
    EXPECT_EQ(sent, decoded);
    for (std::size_t i = 0; i < kNumel; ++i) {
      inputs[i] += input[i];
      received[i] += decoded[i];
      largest = std::max<double>(largest, std::abs(feedback.memory()[i]) + std::abs(sent[i]));
    }
  }
  for (std::size_t i = 0; i < kNumel; ++i) {
    // Every step rounds the memory twice, to a 2^-24th of its magnitude.
    EXPECT_NEAR(received[i] + feedback.memory()[i], inputs[i], kSteps * 0x1.0p-22 * (10 + largest));
  }
}

TEST_P(ErrorFeedbackConformance, MayOverwriteItsInput) {
  ModelCodec codec = this->codec({50});
  ErrorFeedback apart(codec);
  ErrorFeedback in_place(codec);
  for (int step = 0; step < 5; ++step) {
    std::vector<float> values = gaussian(50, step);
    std::vector<float> sent(50);
    Bytes wire;
    Bytes other;
    apart.encode(values, 0, step, wire, sent);
    in_place.encode(values, 0, step, other, values);
    EXPECT_EQ(wire, other);
    EXPECT_EQ(values, sent);
  }
}

TEST_P(ErrorFeedbackConformance, ContinuesFromASavedMemory) {
  ModelCodec codec = this->codec({20});
  ErrorFeedback original(codec);
  std::vector<float> sent(20);
  Bytes wire;
  original.encode(gaussian(20, 9), 0, 0, wire, sent);
  ErrorFeedback resumed(codec);
  std::copy(original.memory().begin(), original.memory().end(), resumed.memory().begin());
  const std::vector<float> input = gaussian(20, 10);
  Bytes other;
  original.encode(input, 0, 1, wire, sent);
  resumed.encode(input, 0, 1, other, sent);
  EXPECT_EQ(wire, other);
}

INSTANTIATE_TEST_SUITE_P(Registry, ErrorFeedbackConformance,
                         testing::ValuesIn(compressor_variants()),
                         [](const auto& test) { return test.param.label; });

}  // namespace
}  // namespace cohort
