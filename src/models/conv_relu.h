// A convolution with its bias and ReLU as one kernel: cuDNN's, on a GPU.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

namespace cohort::models {

struct ConvRelu {
  std::array<std::int64_t, 2> stride;
  std::array<std::int64_t, 2> padding;
  std::array<std::int64_t, 2> dilation;
  std::int64_t groups;
};

// Whether conv_relu() can be used, and is faster: in bfloat16 on a GPU, with channels innermost.
bool suits_conv_relu(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias);

// relu(conv(input, weight) + bias). Differentiable once.
at::Tensor conv_relu(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                     const ConvRelu& options);

}  // namespace cohort::models
