// A vector of floats in the memory of the first GPU.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

#include <span>
#include <vector>

namespace cohort::test {

class GpuVector {
 public:
  explicit GpuVector(const std::vector<float>& values)
      : tensor_(at::from_blob(const_cast<float*>(values.data()),
                              {static_cast<std::int64_t>(values.size())}, at::kFloat)
                    .to(at::Device(at::kCUDA, 0))) {}

  std::span<float> span() { return {tensor_.data_ptr<float>(), tensor_.nbytes() / sizeof(float)}; }
  void add(const std::vector<float>& values) { tensor_.add_(GpuVector(values).tensor_); }
  std::vector<float> read() const {
    const at::Tensor here = tensor_.cpu();
    return {here.data_ptr<float>(), here.data_ptr<float>() + here.numel()};
  }

 private:
  at::Tensor tensor_;
};

}  // namespace cohort::test
