#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "schedules/learning_rate.h"

namespace cohort::schedules {
namespace {

ScheduleOptions sensible() {
  ScheduleOptions options;
  options.lr = 0.4;
  options.total_epochs = 90;
  options.milestones = {30, 60, 80};
  options.values = {0.4, 0.04, 0.004, 0.0004};
  return options;
}

// The values above are right for piecewise; these, two for each of four fields, for fields.
ScheduleOptions sensible_for(const std::string& name) {
  ScheduleOptions options = sensible();
  if (name == "fields") options.values = {0.1, 0.4, 0.4, 0.1, 0.1, 0.01, 0.01, 0};
  return options;
}

double rate(const char* name, const ScheduleOptions& options, double epoch) {
  return schedules().make(name, options)->at(epoch);
}

class EverySchedule : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Registry, EverySchedule, testing::ValuesIn(schedules().names()));

TEST_P(EverySchedule, StaysBetweenZeroAndThePeakAlsoAfterTheEnd) {
  const auto schedule = schedules().make(GetParam(), sensible_for(GetParam()));
  for (double epoch = 0; epoch < 120; epoch += 0.1) {
    EXPECT_GE(schedule->at(epoch), 0);
    EXPECT_LE(schedule->at(epoch), 0.4 + 1e-12);
  }
}

TEST_P(EverySchedule, ClimbsLinearlyInTheWarmUpAndIsItselfAfterwards) {
  const auto plain = schedules().make(GetParam(), sensible_for(GetParam()));
  const auto warmed = with_warmup(schedules().make(GetParam(), sensible_for(GetParam())), 0.1, 5);
  EXPECT_DOUBLE_EQ(warmed->at(0), 0.1);
  EXPECT_DOUBLE_EQ(warmed->at(2.5), 0.1 + (plain->at(2.5) - 0.1) / 2);
  EXPECT_DOUBLE_EQ(warmed->at(5), plain->at(5));
  EXPECT_DOUBLE_EQ(warmed->at(70), plain->at(70));
}

TEST(Schedules, StepAndMultiStepDropAtWholeEpochs) {
  EXPECT_DOUBLE_EQ(rate("step", sensible(), 29.999), 0.4);
  EXPECT_NEAR(rate("step", sensible(), 30), 0.04, 1e-15);
  EXPECT_NEAR(rate("step", sensible(), 60), 0.004, 1e-15);
  EXPECT_DOUBLE_EQ(rate("multi-step", sensible(), 29.999), 0.4);
  EXPECT_NEAR(rate("multi-step", sensible(), 79), 0.004, 1e-15);
  EXPECT_NEAR(rate("multi-step", sensible(), 80), 0.0004, 1e-15);
}

TEST(Schedules, PiecewiseTakesTheGivenRates) {
  EXPECT_EQ(rate("piecewise", sensible(), 0), 0.4);
  EXPECT_EQ(rate("piecewise", sensible(), 30), 0.04);
  EXPECT_EQ(rate("piecewise", sensible(), 1000), 0.0004);
}

TEST(Schedules, CosineAndPolynomialMeetTheirClosedForms) {
  EXPECT_NEAR(rate("cosine", sensible(), 45), 0.2, 1e-12);
  EXPECT_NEAR(rate("cosine", sensible(), 30), 0.3, 1e-12);
  EXPECT_NEAR(rate("cosine", sensible(), 90), 0, 1e-12);
  EXPECT_NEAR(rate("polynomial", sensible(), 45), 0.1, 1e-12);
}

// torch.optim.lr_scheduler.OneCycleLR(max_lr=0.4, total_steps=101), whose peak lies at step
// 0.3 * 101 - 1 = 29.3, read at steps 0, 15, 30, 65 and 100.
TEST(Schedules, OneCycleEqualsPyTorch) {
  ScheduleOptions options = sensible();
  options.total_epochs = 100;
  options.peak_at = 0.293;
  EXPECT_NEAR(rate("one-cycle", options, 0), 0.016, 1e-12);
  EXPECT_NEAR(rate("one-cycle", options, 15), 0.21520359989684032, 1e-12);
  EXPECT_NEAR(rate("one-cycle", options, 30), 0.3999032568453718, 1e-12);
  EXPECT_NEAR(rate("one-cycle", options, 65), 0.19689045005737935, 1e-12);
  EXPECT_NEAR(rate("one-cycle", options, 100), 1.6e-06, 1e-12);
}

TEST(Schedules, ExponentialAndConvexMeetTheirClosedForms) {
  ScheduleOptions options = sensible();
  options.gamma = 0.5;
  EXPECT_DOUBLE_EQ(rate("exponential", options, 0), 0.4);
  EXPECT_DOUBLE_EQ(rate("exponential", options, 2), 0.1);
  EXPECT_DOUBLE_EQ(rate("exponential", options, 0.5), 0.4 * std::sqrt(0.5));
  options.mu = 4;
  options.alpha = 10;
  EXPECT_DOUBLE_EQ(rate("convex", options, 0), 0.0125);
  EXPECT_DOUBLE_EQ(rate("convex", options, 15), 0.005);
}

TEST(Schedules, FieldsGoFromOneRateToTheOtherInTheirShapes) {
  ScheduleOptions options = sensible();
  options.milestones = {10, 20, 40};
  options.values = {0.1, 0.5, 0.8, 0, 7, 7};
  options.shapes = {0, 1, 2};
  options.gamma = 1;
  options.mu = 2;
  options.alpha = 5;
  EXPECT_DOUBLE_EQ(rate("fields", options, 0), 0.1);
  EXPECT_DOUBLE_EQ(rate("fields", options, 2.5), 0.2);
  EXPECT_DOUBLE_EQ(rate("fields", options, 10), 0.8);
  EXPECT_DOUBLE_EQ(rate("fields", options, 15), 0.2);
  EXPECT_DOUBLE_EQ(rate("fields", options, 20), 0.02);
  EXPECT_DOUBLE_EQ(rate("fields", options, 35), 0.0125);
  EXPECT_DOUBLE_EQ(rate("fields", options, 1000), 1.0 / 90);  // as at the end
}

TEST(Schedules, TheLastFieldEndsWithTheRunUnlessToldOtherwise) {
  ScheduleOptions options = sensible();  // of 90 epochs
  options.milestones = {};
  options.values = {0.9, 0};
  EXPECT_DOUBLE_EQ(rate("fields", options, 30), 0.6);
  options.milestones = {45};
  EXPECT_DOUBLE_EQ(rate("fields", options, 30), 0.3);
  options.milestones = {0, 45};  // a field without length is skipped
  options.values = {5, 5, 0.9, 0};
  EXPECT_DOUBLE_EQ(rate("fields", options, 0), 0.9);
}

TEST(LrScaling, IsLinearOrSquareRootInTheBatch) {
  EXPECT_DOUBLE_EQ(scaled_lr(0.1, LrScaling::kNone, 1024, 0), 0.1);
  EXPECT_DOUBLE_EQ(scaled_lr(0.1, LrScaling::kLinear, 1024, 256), 0.4);
  EXPECT_DOUBLE_EQ(scaled_lr(0.1, LrScaling::kSqrt, 1024, 256), 0.2);
  EXPECT_THROW(scaled_lr(0.1, LrScaling::kLinear, 1024, 0), ConfigError);
  EXPECT_THROW(parse_lr_scaling("cubic"), ConfigError);
}

TEST(Schedules, RefuseWhatTheyCannotFollow) {
  ScheduleOptions options = sensible();
  options.milestones = {60, 30};
  EXPECT_THROW(schedules().make("multi-step", options), ConfigError);
  options.milestones = {};
  EXPECT_THROW(schedules().make("multi-step", options), ConfigError);
  options = sensible();
  options.values.pop_back();
  EXPECT_THROW(schedules().make("piecewise", options), ConfigError);
  options = sensible();  // an even number of values, but for two fields
  EXPECT_THROW(schedules().make("fields", options), ConfigError);
  options.milestones = {30};
  EXPECT_NO_THROW(schedules().make("fields", options));
  options.shapes = {0};
  EXPECT_THROW(schedules().make("fields", options), ConfigError);
  options.shapes = {0, 3};
  EXPECT_THROW(schedules().make("fields", options), ConfigError);
  options.alpha = 0;
  EXPECT_THROW(schedules().make("convex", options), ConfigError);
  options.step_size = 0;
  EXPECT_THROW(schedules().make("step", options), ConfigError);
  EXPECT_THROW(with_warmup(schedules().make("constant", options), 0, -1), ConfigError);
}

}  // namespace
}  // namespace cohort::schedules
