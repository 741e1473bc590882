#include "optimizers/norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace cohort::optimizers {
namespace {

TEST(SquaredNorm, IsExactOnSmallIntegersAtEveryLength) {
  std::vector<float> values;
  double expected = 0;
  for (int n = 0; n < 200; ++n) {
    EXPECT_EQ(squared_norm(values), expected) << "length " << n;
    values.push_back(static_cast<float>(n % 17 - 8));
    expected += std::pow(n % 17 - 8, 2);
  }
}

TEST(SquaredNorm, DoesNotOverflowWhereFloatWould) {
  const std::vector<float> values(3, 1e30F);
  EXPECT_NEAR(squared_norm(values), 3e60, 1e54);
}

}  // namespace
}  // namespace cohort::optimizers
