// The mathematics of a topology: its mixing matrix and how fast it mixes. Pure functions.
#pragma once

#include <cstddef>
#include <vector>

#include "topology/topology.h"

namespace cohort::topology {

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

// W of the last step times ... times W of step 0, over one period: what mixing for a period does.
Matrix period_matrix(const Topology& topology);

// All eigenvalues of a symmetric matrix, descending, accurate to about 1e-13 of the largest.
// 4/3 n^3 operations: about a second for n = 1,024.
std::vector<double> symmetric_eigenvalues(Matrix matrix);

// 1 - max(|lambda_2|, |lambda_n|), where 1 = lambda_1 >= ... >= lambda_n are the eigenvalues of a
// symmetric W: the share by which one step shrinks the distance to the mean, at the least. 1 for
// one rank and for the complete graph, 0 when the graph is not connected.
double spectral_gap(const Matrix& mixing);

// 1 - sigma_2, the second singular value: the same for a doubly stochastic matrix that need not be
// symmetric, such as a product of several steps.
double singular_gap(const Matrix& mixing);

// The share by which one period of the topology shrinks the distance to the mean, at the least: of
// one that does not change, spectral_gap() of its W; of others singular_gap() of period_matrix().
double mixing_gap(const Topology& topology);

// After how many steps the distance to the mean is at most 1 / factor of what it was, when each
// period shrinks it by `gap`, as mixing_gap() says: whole periods, infinite for a gap of 0.
double steps_to_shrink(double factor, double gap, Step period);

// ||I - W||_2 = 1 - lambda_n of a symmetric W: `beta` of Koloskova, Stich, Jaggi 2019.
double laplacian_norm(const Matrix& mixing);

}  // namespace cohort::topology
