// The mathematics of a topology: its mixing matrix and how fast it mixes. Pure functions.
#pragma once

#include <cstddef>
#include <vector>

#include "topology/topology.h"

namespace cohort {

// A square matrix, row by row.
struct Matrix {
  int size = 0;
  std::vector<double> values;

  explicit Matrix(int n) : size(n), values(static_cast<std::size_t>(n) * n) {}
  double& at(int row, int column) { return values[static_cast<std::size_t>(row) * size + column]; }
  double at(int row, int column) const {
    return values[static_cast<std::size_t>(row) * size + column];
  }
};

// W at `step`, with what each rank keeps of its own on the diagonal.
Matrix mixing_matrix(const Topology& topology, Step step);

// All eigenvalues of a symmetric matrix, descending, by Jacobi's rotations: O(n^3) for each of a
// few sweeps, accurate to about 1e-14 of the largest.
std::vector<double> symmetric_eigenvalues(Matrix matrix);

// 1 - max(|lambda_2|, |lambda_n|), where 1 = lambda_1 >= ... >= lambda_n are the eigenvalues of W:
// the share by which one step shrinks the distance to the mean, at the least. 1 for one rank and
// for the complete graph, 0 when the graph is not connected.
double spectral_gap(const Matrix& mixing);

}  // namespace cohort
