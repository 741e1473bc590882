#include "topology/mixing.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>

#include "core/error.h"

namespace cohort::topology {
namespace {

struct Tridiagonal {
  std::vector<double> diagonal;
  std::vector<double> beside;  // beside[i] couples i and i + 1; the last is 0
};

// a v for the leading rows of a symmetric matrix, of which only the lower triangle is read, row by
// row: columns would miss the cache at every element.
void multiply_lower(const Matrix& a, std::span<const double> v, std::span<double> product) {
  std::fill(product.begin(), product.end(), 0.0);
  for (std::size_t row = 0; row < v.size(); ++row) {
    const double* entries = &a.values[row * a.size];
    double sum = entries[row] * v[row];
    for (std::size_t column = 0; column < row; ++column) {
      sum += entries[column] * v[column];
      product[column] += entries[column] * v[row];
    }
    product[row] += sum;
  }
}

// Householder's reflections, last row first (Golub, Van Loan, section 8.3.1).
Tridiagonal tridiagonal(Matrix a) {
  const int n = a.size;
  Tridiagonal result{std::vector<double>(n), std::vector<double>(n)};
  std::vector<double> p(n);
  for (int last = n - 1; last >= 1; --last) {
    const std::span<double> v(&a.at(last, 0), last);  // becomes the reflection's direction
    double squares = 0;
    for (const double value : v) squares += value * value;
    const double corner = v[last - 1];
    const double length = std::copysign(std::sqrt(squares), corner);
    result.diagonal[last] = a.at(last, last);
    result.beside[last - 1] = -length;
    const double half_norm = squares + length * corner;  // |v|^2 / 2 once the corner is added
    if (half_norm <= std::numeric_limits<double>::min()) continue;
    v[last - 1] += length;
    const std::span<double> q(p.data(), last);
    multiply_lower(a, v, q);
    double projection = 0;
    for (int i = 0; i < last; ++i) projection += v[i] * (q[i] /= half_norm);
    projection /= 2 * half_norm;
    for (int i = 0; i < last; ++i) q[i] -= projection * v[i];
    for (int row = 0; row < last; ++row) {
      double* entries = &a.at(row, 0);
      for (int column = 0; column <= row; ++column) {
        entries[column] -= v[row] * q[column] + q[row] * v[column];
      }
    }
  }
  result.diagonal[0] = a.at(0, 0);
  return result;
}

// One implicit QL step with Wilkinson's shift on the rows first..last (section 8.3.3, mirrored).
void ql_step(Tridiagonal& matrix, int first, int last) {
  std::vector<double>& d = matrix.diagonal;
  std::vector<double>& e = matrix.beside;
  const double delta = (d[first + 1] - d[first]) / (2 * e[first]);
  const double root = std::copysign(std::hypot(delta, 1.0), delta);
  double g = d[last] - d[first] + e[first] / (delta + root);
  double sine = 1;
  double cosine = 1;
  double shift = 0;
  for (int i = last - 1; i >= first; --i) {
    const double f = sine * e[i];
    const double b = cosine * e[i];
    const double r = std::hypot(f, g);
    e[i + 1] = r;
    if (r == 0) {  // it fell apart by itself
      d[i + 1] -= shift;
      e[last] = 0;
      return;
    }
    sine = f / r;
    cosine = g / r;
    g = d[i + 1] - shift;
    const double change = (d[i] - g) * sine + 2 * cosine * b;
    shift = sine * change;
    d[i + 1] = g + shift;
    g = cosine * change - b;
  }
  d[first] -= shift;
  e[first] = g;
  e[last] = 0;
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

Matrix period_matrix(const Topology& topology) {
  const int size = topology.size();
  Matrix product(size);
  for (Rank rank = 0; rank < size; ++rank) product.at(rank, rank) = 1;
  for (Step step = 0; step < topology.period(); ++step) {
    Matrix next(size);
    for (Rank rank = 0; rank < size; ++rank) {
      double* row = &next.at(rank, 0);
      double kept = 1;
      const auto add = [&](Rank from, double weight) {
        const double* source = &product.at(from, 0);
        for (int column = 0; column < size; ++column) row[column] += weight * source[column];
      };
      for (const Neighbour& neighbour : topology.neighbours(rank, step)) {
        add(neighbour.rank, neighbour.weight);
        kept -= neighbour.weight;
      }
      add(rank, kept);
    }
    product = std::move(next);
  }
  return product;
}

std::vector<double> symmetric_eigenvalues(Matrix matrix) {
  const int n = matrix.size;
  Tridiagonal reduced = tridiagonal(std::move(matrix));
  double norm = 0;
  for (int i = 0; i < n; ++i) {
    norm = std::max(norm, std::abs(reduced.diagonal[i]) + std::abs(reduced.beside[i]));
  }
  const double small = std::numeric_limits<double>::epsilon() * norm;
  for (int first = 0; first < n; ++first) {
    // Two or three steps are usual; the bound is for NaN.
    for (int attempt = 0; attempt < 100; ++attempt) {
      int last = first;
      while (last < n - 1 && std::abs(reduced.beside[last]) > small) ++last;
      if (last == first) break;
      ql_step(reduced, first, last);
    }
  }
  std::sort(reduced.diagonal.begin(), reduced.diagonal.end(), std::greater<>());
  return reduced.diagonal;
}

double spectral_gap(const Matrix& mixing) {
  COHORT_CHECK(mixing.size >= 1, "a mixing matrix has at least one row");
  if (mixing.size == 1) return 1;
  const std::vector<double> eigenvalues = symmetric_eigenvalues(mixing);
  return 1 - std::max(std::abs(eigenvalues[1]), std::abs(eigenvalues.back()));
}

double singular_gap(const Matrix& mixing) {
  COHORT_CHECK(mixing.size >= 1, "a mixing matrix has at least one row");
  const int n = mixing.size;
  // Without the mean's part, sigma_2 becomes the largest: the root of that of D'D.
  Matrix square(n);
  std::vector<double> deviation(n);
  for (int k = 0; k < n; ++k) {
    for (int i = 0; i < n; ++i) deviation[i] = mixing.at(k, i) - 1.0 / n;
    for (int row = 0; row < n; ++row) {
      if (deviation[row] == 0) continue;
      double* entries = &square.at(row, 0);
      for (int column = 0; column <= row; ++column) {
        entries[column] += deviation[row] * deviation[column];
      }
    }
  }
  const double largest = symmetric_eigenvalues(std::move(square)).front();
  return 1 - std::sqrt(std::max(largest, 0.0));
}

double mixing_gap(const Topology& topology) {
  return topology.changes() ? singular_gap(period_matrix(topology))
                            : spectral_gap(mixing_matrix(topology, 0));
}

double steps_to_shrink(double factor, double gap, Step period) {
  if (gap <= 0) return std::numeric_limits<double>::infinity();
  const double rest = std::max(1 - gap, 1e-300);
  // The tolerance keeps an exact power from becoming one more because of rounding.
  const double periods = std::ceil(std::log(factor) / -std::log(rest) - 1e-9);
  return static_cast<double>(period) * std::max(periods, 1.0);
}

double laplacian_norm(const Matrix& mixing) {
  COHORT_CHECK(mixing.size >= 1, "a mixing matrix has at least one row");
  return 1 - symmetric_eigenvalues(mixing).back();
}

}  // namespace cohort::topology
