// Error feedback around every registered compressor.
#include "compressors/error_feedback.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "compressors/registry.h"
#include "compressors/vectors.h"

namespace cohort {
namespace {

class ErrorFeedbackConformance : public testing::TestWithParam<CompressorRegistry::Entry> {};

TEST_P(ErrorFeedbackConformance, LosesNothingOverTime) {
  constexpr std::size_t kNumel = 130;
  constexpr int kSteps = 200;
  const auto compressor = GetParam().make(CompressorOptions{.seed = 3});
  ErrorFeedback feedback(*compressor, kNumel);
  std::vector<double> inputs(kNumel);
  std::vector<double> received(kNumel);
  std::vector<float> sent(kNumel);
  std::vector<float> decoded(kNumel);
  Bytes wire;
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<float> input = gaussian(kNumel, step);
    feedback.encode(input, wire, sent);
    compressor->decode(wire, decoded);
    EXPECT_EQ(sent, decoded);
    for (std::size_t i = 0; i < kNumel; ++i) {
      inputs[i] += input[i];
      received[i] += decoded[i];
    }
  }
  for (std::size_t i = 0; i < kNumel; ++i) {
    // Every step rounds the memory twice, to a 2^-24th of its magnitude.
    const double allowed = kSteps * 0x1.0p-22 * (10 + std::abs(feedback.memory()[i]));
    EXPECT_NEAR(received[i] + feedback.memory()[i], inputs[i], allowed);
  }
}

TEST_P(ErrorFeedbackConformance, MayOverwriteItsInput) {
  const auto compressor = GetParam().make(CompressorOptions{.seed = 3});
  const auto twin = GetParam().make(CompressorOptions{.seed = 3});
  ErrorFeedback apart(*compressor, 50);
  ErrorFeedback in_place(*twin, 50);
  for (int step = 0; step < 5; ++step) {
    std::vector<float> values = gaussian(50, step);
    std::vector<float> sent(50);
    Bytes wire;
    Bytes other;
    apart.encode(values, wire, sent);
    in_place.encode(values, other, values);
    EXPECT_EQ(wire, other);
    EXPECT_EQ(values, sent);
  }
}

TEST_P(ErrorFeedbackConformance, ContinuesFromASavedMemory) {
  // Drawn numbers are the compressor's state, not the memory's: save before any is drawn.
  const auto compressor = GetParam().make(CompressorOptions{.seed = 3});
  const auto twin = GetParam().make(CompressorOptions{.seed = 3});
  ErrorFeedback original(*compressor, 20);
  ErrorFeedback resumed(*twin, 20);
  const std::vector<float> saved = gaussian(20, 9);
  std::copy(saved.begin(), saved.end(), original.memory().begin());
  std::copy(saved.begin(), saved.end(), resumed.memory().begin());
  const std::vector<float> input = gaussian(20, 10);
  std::vector<float> sent(20);
  Bytes wire;
  Bytes other;
  original.encode(input, wire, sent);
  resumed.encode(input, other, sent);
  EXPECT_EQ(wire, other);
}

INSTANTIATE_TEST_SUITE_P(Registry, ErrorFeedbackConformance,
                         testing::ValuesIn(compressors().entries()), [](const auto& test) {
                           std::string name = test.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace cohort
