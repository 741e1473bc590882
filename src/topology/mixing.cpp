#include "topology/mixing.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/error.h"

namespace cohort {
namespace {

double off_diagonal_norm(const Matrix& matrix) {
  double sum = 0;
  for (int row = 0; row < matrix.size; ++row) {
    for (int column = row + 1; column < matrix.size; ++column) {
      sum += matrix.at(row, column) * matrix.at(row, column);
    }
  }
  return std::sqrt(2 * sum);
}

// The rotation in the plane of (p, q) that makes a_pq zero (Golub, Van Loan, section 8.5).
void rotate(Matrix& a, int p, int q) {
  const double apq = a.at(p, q);
  if (apq == 0) return;
  const double theta = (a.at(q, q) - a.at(p, p)) / (2 * apq);
  const double t = std::copysign(1.0, theta) / (std::abs(theta) + std::hypot(theta, 1.0));
  const double c = 1 / std::hypot(t, 1.0);
  const double s = t * c;
  for (int k = 0; k < a.size; ++k) {
    const double akp = a.at(k, p);
    const double akq = a.at(k, q);
    a.at(k, p) = c * akp - s * akq;
    a.at(k, q) = s * akp + c * akq;
  }
  for (int k = 0; k < a.size; ++k) {
    const double apk = a.at(p, k);
    const double aqk = a.at(q, k);
    a.at(p, k) = c * apk - s * aqk;
    a.at(q, k) = s * apk + c * aqk;
  }
}

}  // namespace

Matrix mixing_matrix(const Topology& topology, Step step) {
  Matrix mixing(topology.size());
  for (Rank rank = 0; rank < mixing.size; ++rank) {
    double given = 0;
    for (const Neighbour& neighbour : topology.neighbours(rank, step)) {
      mixing.at(rank, neighbour.rank) = neighbour.weight;
      given += neighbour.weight;
    }
    mixing.at(rank, rank) = 1 - given;
  }
  return mixing;
}

std::vector<double> symmetric_eigenvalues(Matrix matrix) {
  double norm = 0;
  for (const double value : matrix.values) norm += value * value;
  const double small = 1e-15 * std::sqrt(norm);
  // Convergence is quadratic: ten sweeps do for thousands of rows, the bound is for NaN.
  for (int sweep = 0; sweep < 60 && off_diagonal_norm(matrix) > small; ++sweep) {
    for (int p = 0; p < matrix.size; ++p) {
      for (int q = p + 1; q < matrix.size; ++q) rotate(matrix, p, q);
    }
  }
  std::vector<double> eigenvalues(matrix.size);
  for (int i = 0; i < matrix.size; ++i) eigenvalues[i] = matrix.at(i, i);
  std::sort(eigenvalues.begin(), eigenvalues.end(), std::greater<>());
  return eigenvalues;
}

double spectral_gap(const Matrix& mixing) {
  COHORT_CHECK(mixing.size >= 1, "a mixing matrix has at least one row");
  if (mixing.size == 1) return 1;
  const std::vector<double> eigenvalues = symmetric_eigenvalues(mixing);
  return 1 - std::max(std::abs(eigenvalues[1]), std::abs(eigenvalues.back()));
}

}  // namespace cohort
