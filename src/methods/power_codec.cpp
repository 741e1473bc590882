// PowerSGD (Vogels, Karimireddy, Jaggi 2019, "PowerSGD: Practical Low-Rank Gradient Compression for
// Distributed Optimization"), algorithm 1: one step of subspace iteration with a warm start.
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/matmul.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/random.h"
#include "methods/group_codec.h"

namespace cohort::methods {
namespace {

// Gram-Schmidt; a column that is nothing beside the others becomes zero.
void orthogonalise(const at::Tensor& matrix) {
  const std::int64_t rows = matrix.size(0);
  const std::int64_t columns = matrix.size(1);
  float* data = matrix.data_ptr<float>();
  const auto product = [&](std::int64_t a, std::int64_t b) {
    double sum = 0;
    for (std::int64_t i = 0; i < rows; ++i) {
      sum +=
          static_cast<double>(data[i * columns + a]) * static_cast<double>(data[i * columns + b]);
    }
    return sum;
  };
  for (std::int64_t column = 0; column < columns; ++column) {
    const double before = std::sqrt(product(column, column));
    for (std::int64_t other = 0; other < column; ++other) {
      const auto overlap = static_cast<float>(product(column, other));
      for (std::int64_t i = 0; i < rows; ++i) {
        data[i * columns + column] -= overlap * data[i * columns + other];
      }
    }
    const double length = std::sqrt(product(column, column));
    const double scale = length > 1e-6 * before && length > 0 ? 1 / length : 0;
    for (std::int64_t i = 0; i < rows; ++i) {
      data[i * columns + column] *= static_cast<float>(scale);
    }
  }
}

class PowerCodec final : public GroupCodec {
 public:
  PowerCodec(const MethodOptions& options, std::int64_t most, const Replica& replica,
             const std::vector<Range>& tensors)
      : options_(options) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const Range& range = tensors[i];
      const std::int64_t rows =
          replica.segments()[i].shape.empty() ? 1 : replica.segments()[i].shape.front();
      const std::int64_t columns = rows == 0 ? 0 : range.size / rows;
      const std::int64_t rank = std::min({most, rows, columns});
      // Factors that are longer than the matrix save nothing.
      if (rank * (rows + columns) >= range.size) {
        whole_.push_back(range);
      } else {
        matrices_.push_back({range, rows, columns, rank, first_guess(columns, rank, i)});
      }
    }
  }

  void exchange(std::span<const float> move, const StepInfo&, std::span<float> sent,
                std::span<float> mean) override {
    const c10::NoGradGuard no_grad;
    std::vector<float> sums;
    std::vector<at::Tensor> left;
    for (const Matrix& matrix : matrices_) {
      left.push_back(view(move, matrix).matmul(matrix.right).contiguous());
      append(sums, left.back());
    }
    for (const Range& range : whole_) {
      const auto part =
          move.subspan(static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.size));
      sums.insert(sums.end(), part.begin(), part.end());
      std::copy(part.begin(), part.end(), sent.begin() + range.begin);
    }
    average(sums);
    std::size_t place = 0;
    for (const at::Tensor& factor : left) place = take(sums, place, factor);
    for (const Range& range : whole_) {
      std::copy_n(sums.begin() + static_cast<std::ptrdiff_t>(place), range.size,
                  mean.begin() + range.begin);
      place += static_cast<std::size_t>(range.size);
    }
    sums.clear();
    for (std::size_t i = 0; i < matrices_.size(); ++i) {
      orthogonalise(left[i]);
      matrices_[i].right.copy_(view(move, matrices_[i]).t().matmul(left[i]));
      append(sums, matrices_[i].right);
    }
    average(sums);
    place = 0;
    for (std::size_t i = 0; i < matrices_.size(); ++i) {
      const Matrix& matrix = matrices_[i];
      place = take(sums, place, matrix.right);
      const at::Tensor product = left[i].matmul(matrix.right.t()).contiguous();
      // What the group made of it is what each rank counts as sent: all errors are kept.
      for (const std::span<float> out : {sent, mean}) {
        std::memcpy(out.data() + matrix.range.begin, product.data_ptr<float>(),
                    static_cast<std::size_t>(matrix.range.size) * sizeof(float));
      }
    }
  }

  void visit_state(StateVisitor& visitor) override {
    for (std::size_t i = 0; i < matrices_.size(); ++i) {
      visitor.tensor("power.factor" + std::to_string(i), matrices_[i].right);
    }
  }

 private:
  struct Matrix {
    Range range;
    std::int64_t rows;
    std::int64_t columns;
    std::int64_t rank;
    at::Tensor right;  // columns x rank; of the last exchange
  };

  at::Tensor first_guess(std::int64_t columns, std::int64_t rank, std::size_t tensor) const {
    at::Tensor guess = at::empty({columns, rank}, at::kFloat);
    RandomStream random(options_.gossip.compression.seed, "power", {tensor});
    float* data = guess.data_ptr<float>();
    for (std::int64_t i = 0; i < guess.numel(); ++i) data[i] = static_cast<float>(random.normal());
    return guess;
  }

  static at::Tensor view(std::span<const float> move, const Matrix& matrix) {
    return at::from_blob(const_cast<float*>(move.data()) + matrix.range.begin,
                         {matrix.rows, matrix.columns}, at::kFloat);
  }

  static void append(std::vector<float>& sums, const at::Tensor& factor) {
    const float* data = factor.data_ptr<float>();
    sums.insert(sums.end(), data, data + factor.numel());
  }

  static std::size_t take(const std::vector<float>& sums, std::size_t place,
                          const at::Tensor& factor) {
    std::memcpy(factor.data_ptr<float>(), sums.data() + place, factor.nbytes());
    return place + static_cast<std::size_t>(factor.numel());
  }

  void average(std::vector<float>& values) {
    options_.gradients->all_reduce(values, deadline_in(options_.patience));
    const float share = 1.0F / static_cast<float>(options_.size);
    for (float& value : values) value *= share;
  }

  MethodOptions options_;
  std::vector<Matrix> matrices_;
  std::vector<Range> whole_;
};

}  // namespace

std::unique_ptr<GroupCodec> make_power_codec(const MethodOptions& options, std::int64_t rank,
                                             const Replica& replica,
                                             const std::vector<Range>& tensors) {
  return std::make_unique<PowerCodec>(options, rank, replica, tensors);
}

}  // namespace cohort::methods
