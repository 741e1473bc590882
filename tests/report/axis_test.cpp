#include "report/axis.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "report/not_a_number.h"

namespace cohort::report {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

std::vector<std::string> texts(const Axis& axis) {
  std::vector<std::string> all;
  for (const Tick& tick : axis.ticks) all.push_back(tick.text);
  return all;
}

using Texts = std::vector<std::string>;

TEST(LinearAxis, HasTheTicksAPersonWouldDraw) {
  EXPECT_EQ(texts(make_axis({0, 8}, Scale::kLinear, 5)), (Texts{"0", "2", "4", "6", "8"}));
  EXPECT_EQ(texts(make_axis({0, 1}, Scale::kLinear, 6)),
            (Texts{"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"}));
  EXPECT_EQ(texts(make_axis({71.3, 88.2}, Scale::kLinear, 5)), (Texts{"75", "80", "85"}));
  EXPECT_EQ(texts(make_axis({-1, 1}, Scale::kLinear, 5)),
            (Texts{"-1.0", "-0.5", "0.0", "0.5", "1.0"}));
  EXPECT_EQ(texts(make_axis({0, 40000}, Scale::kLinear, 3)), (Texts{"0", "20,000", "40,000"}));
  EXPECT_EQ(texts(make_axis({0, 4e12}, Scale::kLinear, 3)), (Texts{"0", "2e+12", "4e+12"}));
  EXPECT_EQ(texts(make_axis({0, 4e-7}, Scale::kLinear, 3)), (Texts{"0", "2e-07", "4e-07"}));
}

TEST(LinearAxis, TicksAreFewRoundAndWithinAnyRange) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 3000; ++i) {
    const double size = std::pow(10, std::uniform_real_distribution<>(-12, 12)(random));
    const double low = std::uniform_real_distribution<>(-5, 5)(random) * size;
    const Interval range{low, low + std::uniform_real_distribution<>(0.01, 10)(random) * size};
    const int most = std::uniform_int_distribution<>(2, 12)(random);
    const Axis axis = make_axis(range, Scale::kLinear, most);
    ASSERT_LE(axis.ticks.size(), static_cast<std::size_t>(most));
    ASSERT_GE(axis.ticks.size() * 5.1, most)
        << "too few from " << range.low << " to " << range.high;
    const double slack = 1e-8 * range.length();
    for (std::size_t t = 0; t < axis.ticks.size(); ++t) {
      ASSERT_GE(axis.ticks[t].value, range.low - slack);
      ASSERT_LE(axis.ticks[t].value, range.high + slack);
      if (t == 0) continue;
      const double step = axis.ticks[t].value - axis.ticks[t - 1].value;
      const double digit = step / std::pow(10, std::floor(std::log10(step * (1 + 1e-6))));
      ASSERT_TRUE(std::abs(digit - 1) < 1e-4 || std::abs(digit - 2) < 1e-4 ||
                  std::abs(digit - 5) < 1e-4)
          << step;
      ASSERT_NE(axis.ticks[t].text, axis.ticks[t - 1].text);
    }
  }
}

TEST(LinearAxis, TextsReadBackAsTheirValues) {
  for (const Interval& range :
       {Interval{0, 7.5}, Interval{0.1234, 0.1239}, Interval{-3e-5, 8e-5}, Interval{1e9, 1.2e9}}) {
    for (const Tick& tick : make_axis(range, Scale::kLinear, 8).ticks) {
      std::string plain = tick.text;
      std::erase(plain, ',');
      EXPECT_NEAR(std::stod(plain), tick.value, 1e-6 * range.length()) << tick.text;
    }
  }
}

TEST(LogarithmicAxis, HasPowersOfTenOrTheirHalves) {
  EXPECT_EQ(texts(make_axis({0.001, 100}, Scale::kLogarithmic, 8)),
            (Texts{"0.001", "0.01", "0.1", "1", "10", "100"}));
  EXPECT_EQ(texts(make_axis({0.1, 4}, Scale::kLogarithmic, 6)),
            (Texts{"0.1", "0.2", "0.5", "1", "2"}));
  EXPECT_EQ(texts(make_axis({1e-30, 1e30}, Scale::kLogarithmic, 4)).size(), 3U);
  // Less than a factor of two: as on a linear scale.
  EXPECT_EQ(texts(make_axis({0.31, 0.49}, Scale::kLogarithmic, 4)),
            (Texts{"0.35", "0.40", "0.45"}));
}

TEST(Axis, PutsValuesInProportion) {
  const Axis linear = make_axis({10, 30}, Scale::kLinear, 5);
  EXPECT_DOUBLE_EQ(linear.share(10), 0);
  EXPECT_DOUBLE_EQ(linear.share(15), 0.25);
  EXPECT_DOUBLE_EQ(linear.share(40), 1.5);
  const Axis logarithmic = make_axis({1, 10000}, Scale::kLogarithmic, 5);
  EXPECT_DOUBLE_EQ(logarithmic.share(1), 0);
  EXPECT_NEAR(logarithmic.share(10), 0.25, 1e-12);
  EXPECT_NEAR(logarithmic.share(1000), 0.75, 1e-12);
}

TEST(IntervalOf, LeavesOutWhatHasNoPlace) {
  const std::vector<double> values = {kNan, 3, -1, kInfinite, 7, -kInfinite};
  EXPECT_EQ(range_of(values, Scale::kLinear), (Interval{-1, 7}));
  EXPECT_EQ(range_of(values, Scale::kLogarithmic), (Interval{3, 7}));
  EXPECT_EQ(range_of(std::vector{kNan}, Scale::kLinear), (Interval{0, 1}));
  EXPECT_EQ(range_of(std::vector{0.0, -1.0}, Scale::kLogarithmic), (Interval{1, 10}));
}

TEST(IntervalOf, AnythingMakesAnAxis) {
  for (const double value : {0.0, 5.0, -5.0, 1e-320, 1e308, -1e308, 1e-300, 0.1}) {
    for (const double other : {value, 1e308, -1e308, 0.0, 1e-310, value * (1 + 1e-15)}) {
      for (const Scale scale : {Scale::kLinear, Scale::kLogarithmic}) {
        const Interval range =
            padded(range_of(std::vector{value, other}, scale), 0.05, scale, {0, kInfinite});
        ASSERT_LT(range.low, range.high) << value << " " << other;
        ASSERT_TRUE(std::isfinite(range.length()));
        EXPECT_LE(make_axis(range, scale, 6).ticks.size(), 6U) << value << " " << other;
      }
    }
  }
}

TEST(Padding, StopsAtTheLimits) {
  EXPECT_EQ(padded({10, 20}, 0.1, Scale::kLinear, {-kInfinite, kInfinite}), (Interval{9, 21}));
  EXPECT_EQ(padded({1, 99}, 0.1, Scale::kLinear, {0, 100}), (Interval{0, 100}));
  const Interval outside = padded({-5, 99}, 0.1, Scale::kLinear, {0, 100});
  EXPECT_LT(outside.low, -5) << "values beyond a limit still need room";
}

TEST(ShortNumber, KeepsThreeDigitsThatCount) {
  EXPECT_EQ(short_number(87.312), "87.3");
  EXPECT_EQ(short_number(0.35524), "0.355");
  EXPECT_EQ(short_number(0.0001), "0.0001");
  EXPECT_EQ(short_number(12400.4), "12,400");
  EXPECT_EQ(short_number(1234.4), "1234");
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(-2.5), "-2.50");
  EXPECT_EQ(short_number(1.5e8), "1.5e+08");
  EXPECT_EQ(short_number(1.234e-7), "1.23e-07");
  EXPECT_EQ(short_number(kNan), "not a number");
}

}  // namespace
}  // namespace cohort::report
