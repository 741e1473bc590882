#include "topology/mixing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "core/random.h"
#include "topology/complete.h"
#include "topology/ring.h"

namespace cohort {
namespace {

TEST(SymmetricEigenvalues, AreThoseOfKnownMatrices) {
  Matrix matrix(2);
  matrix.values = {2, 1, 1, 2};
  const auto two = symmetric_eigenvalues(matrix);
  EXPECT_NEAR(two[0], 3, 1e-14);
  EXPECT_NEAR(two[1], 1, 1e-14);

  Matrix diagonal(3);
  diagonal.values = {-5, 0, 0, 0, 7, 0, 0, 0, 0};
  EXPECT_EQ(symmetric_eigenvalues(diagonal), (std::vector<double>{7, 0, -5}));
  EXPECT_EQ(symmetric_eigenvalues(Matrix(1)), std::vector<double>{0});
}

TEST(SymmetricEigenvalues, KeepTraceAndSquareSumOfRandomMatrices) {
  RandomStream random(1, "test");
  for (const int size : {3, 10, 50}) {
    Matrix matrix(size);
    double trace = 0;
    double squares = 0;
    for (int row = 0; row < size; ++row) {
      for (int column = 0; column <= row; ++column) {
        matrix.at(row, column) = matrix.at(column, row) = random.normal();
      }
      trace += matrix.at(row, row);
    }
    for (const double value : matrix.values) squares += value * value;
    for (const double eigenvalue : symmetric_eigenvalues(matrix)) {
      trace -= eigenvalue;
      squares -= eigenvalue * eigenvalue;
    }
    EXPECT_NEAR(trace, 0, 1e-11);
    EXPECT_NEAR(squares, 0, 1e-9);
  }
}

TEST(SpectralGap, OfARingIsThePublishedOne) {
  const auto gap = [](int size) { return spectral_gap(mixing_matrix(Ring(size), 0)); };
  EXPECT_NEAR(gap(4), 0.667, 5e-4);
  EXPECT_NEAR(gap(8), 0.195, 5e-4);
  EXPECT_NEAR(gap(16), 0.051, 5e-4);
  EXPECT_NEAR(gap(32), 0.0128, 5e-5);
  EXPECT_NEAR(gap(36), 0.0101, 5e-5);
  EXPECT_NEAR(gap(64), 0.0032, 5e-5);
}

TEST(SpectralGap, OfARingIsTheClosedForm) {
  for (int size = 3; size <= 40; ++size) {
    double second = 0;
    for (int k = 1; k < size; ++k) {
      second = std::max(second, std::abs((1 + 2 * std::cos(2 * std::numbers::pi * k / size)) / 3));
    }
    EXPECT_NEAR(spectral_gap(mixing_matrix(Ring(size), 0)), 1 - second, 1e-12) << size;
  }
}

TEST(SpectralGap, IsOneWhenOneStepReachesTheMean) {
  for (const int size : {1, 2, 3, 17}) {
    EXPECT_NEAR(spectral_gap(mixing_matrix(Complete(size), 0)), 1, 1e-12);
  }
}

TEST(SpectralGap, IsZeroForRanksThatNeverMixAndForAnEndlessSwap) {
  Matrix apart(2);
  apart.values = {1, 0, 0, 1};
  EXPECT_NEAR(spectral_gap(apart), 0, 1e-15);
  Matrix swap(2);
  swap.values = {0, 1, 1, 0};
  EXPECT_NEAR(spectral_gap(swap), 0, 1e-15);
}

}  // namespace
}  // namespace cohort
