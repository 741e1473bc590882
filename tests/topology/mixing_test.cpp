#include "topology/mixing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <numbers>

#include "core/random.h"
#include "topology/complete.h"
#include "topology/registry.h"
#include "topology/ring.h"

namespace cohort::topology {
namespace {

TopologyOptions options_of(int size) { return {.size = size, .seed = 0, .degree = 0, .file = ""}; }

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

// Jacobi's rotations (Golub, Van Loan, section 8.5): slow, and nothing like what is tested.
std::vector<double> eigenvalues_by_rotations(Matrix a) {
  for (int sweep = 0; sweep < 20; ++sweep) {
    for (int p = 0; p < a.size; ++p) {
      for (int q = p + 1; q < a.size; ++q) {
        if (a.at(p, q) == 0) continue;
        const double theta = (a.at(q, q) - a.at(p, p)) / (2 * a.at(p, q));
        const double t = std::copysign(1.0, theta) / (std::abs(theta) + std::hypot(theta, 1.0));
        const double c = 1 / std::hypot(t, 1.0);
        const double s = t * c;
        for (int k = 0; k < a.size; ++k) {
          const double kp = a.at(k, p);
          const double kq = a.at(k, q);
          a.at(k, p) = c * kp - s * kq;
          a.at(k, q) = s * kp + c * kq;
        }
        for (int k = 0; k < a.size; ++k) {
          const double pk = a.at(p, k);
          const double qk = a.at(q, k);
          a.at(p, k) = c * pk - s * qk;
          a.at(q, k) = s * pk + c * qk;
        }
      }
    }
  }
  std::vector<double> values;
  for (int i = 0; i < a.size; ++i) values.push_back(a.at(i, i));
  std::sort(values.begin(), values.end(), std::greater<>());
  return values;
}

TEST(SymmetricEigenvalues, AreThoseThatRotationsFind) {
  RandomStream random(2, "test");
  for (const int size : {1, 2, 3, 4, 17, 60}) {
    Matrix matrix(size);
    for (int row = 0; row < size; ++row) {
      for (int column = 0; column <= row; ++column) {
        // Also many zeros, which split the matrix.
        const double value = random.below(3) == 0 ? random.normal() : 0;
        matrix.at(row, column) = matrix.at(column, row) = value;
      }
    }
    const auto expected = eigenvalues_by_rotations(matrix);
    const auto found = symmetric_eigenvalues(matrix);
    for (int i = 0; i < size; ++i) EXPECT_NEAR(found[i], expected[i], 1e-12) << size;
  }
  for (const char* name : {"torus", "social", "hypercube", "star", "exponential", "complete"}) {
    const auto topology = topologies().make(name, options_of(32));
    const Matrix mixing = mixing_matrix(*topology, 0);
    const auto expected = eigenvalues_by_rotations(mixing);
    const auto found = symmetric_eigenvalues(mixing);
    for (int i = 0; i < 32; ++i) EXPECT_NEAR(found[i], expected[i], 1e-12) << name;
  }
}

double gap_of(const char* name, int size) {
  return mixing_gap(*topologies().make(name, options_of(size)));
}

TEST(SpectralGap, IsThePublishedOne) {
  EXPECT_NEAR(gap_of("ring", 4), 0.667, 5e-4);
  EXPECT_NEAR(gap_of("ring", 8), 0.195, 5e-4);
  EXPECT_NEAR(gap_of("ring", 16), 0.051, 5e-4);
  EXPECT_NEAR(gap_of("ring", 32), 0.0128, 5e-5);
  EXPECT_NEAR(gap_of("ring", 36), 0.0101, 5e-5);
  EXPECT_NEAR(gap_of("ring", 64), 0.0032, 5e-5);
  EXPECT_NEAR(gap_of("torus", 9), 0.6, 5e-4);
  EXPECT_NEAR(gap_of("torus", 16), 0.4, 5e-4);
  EXPECT_NEAR(gap_of("torus", 36), 0.2, 5e-4);
  EXPECT_NEAR(gap_of("torus", 64), 0.117, 5e-4);
  EXPECT_NEAR(gap_of("social", 32), 0.0903, 5e-5);
  EXPECT_NEAR(gap_of("margulis-expander", 9), 0.6, 5e-4);
  EXPECT_NEAR(gap_of("margulis-expander", 16), 0.461, 5e-4);
  EXPECT_NEAR(gap_of("margulis-expander", 25), 0.307, 5e-4);
  EXPECT_NEAR(gap_of("margulis-expander", 36), 0.349, 5e-4);
}

TEST(SpectralGap, IsTheClosedFormOfHypercubeAndStar) {
  for (const int dimension : {2, 3, 6}) {
    EXPECT_NEAR(gap_of("hypercube", 1 << dimension), 2.0 / (dimension + 1), 1e-12);
  }
  for (const int size : {3, 10, 40}) EXPECT_NEAR(gap_of("star", size), 1.0 / size, 1e-12);
}

TEST(SpectralGap, OfAThousandRanksTakesSeconds) {
  const std::clock_t start = std::clock();  // of the processor: the machine may be busy
  EXPECT_NEAR(gap_of("ring", 1024), 1 - (1 + 2 * std::cos(2 * std::numbers::pi / 1024)) / 3, 1e-11);
  EXPECT_NEAR(gap_of("torus", 1024), 0.4 * (1 - std::cos(2 * std::numbers::pi / 32)), 1e-11);
  // About one second; sanitizers take more.
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 60);
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

TEST(SingularGap, IsTheSpectralOneOfSymmetricMatrices) {
  for (const char* name : {"ring", "torus", "star", "exponential"}) {
    const Matrix mixing = mixing_matrix(*topologies().make(name, options_of(12)), 0);
    EXPECT_NEAR(singular_gap(mixing), spectral_gap(mixing), 1e-9) << name;
  }
}

TEST(SingularGap, OfARotationIsZeroThoughNothingIsSymmetric) {
  Matrix rotation(3);
  rotation.values = {0, 1, 0, 0, 0, 1, 1, 0, 0};
  EXPECT_NEAR(singular_gap(rotation), 0, 1e-12);
}

TEST(StepsToShrink, CountsWholePeriods) {
  EXPECT_EQ(steps_to_shrink(8, 0.5, 1), 3);
  EXPECT_EQ(steps_to_shrink(9, 0.5, 1), 4);
  EXPECT_EQ(steps_to_shrink(10, 1, 3), 3);
  EXPECT_EQ(steps_to_shrink(4, 0.5, 5), 10);
  EXPECT_TRUE(std::isinf(steps_to_shrink(10, 0, 1)));
}

TEST(LaplacianNorm, IsTheLargestStepAwayFromOneself) {
  // Eigenvalues of a ring: (1 + 2 cos t) / 3, the least -1/3 at t = pi.
  EXPECT_NEAR(laplacian_norm(mixing_matrix(Ring(8), 0)), 4.0 / 3, 1e-12);
  EXPECT_NEAR(laplacian_norm(mixing_matrix(Complete(5), 0)), 1, 1e-12);
  EXPECT_EQ(laplacian_norm(mixing_matrix(Ring(1), 0)), 0);
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
}  // namespace cohort::topology
