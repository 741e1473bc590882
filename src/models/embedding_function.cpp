#include "models/embedding_function.h"

#include <ATen/core/ivalue.h>  // clang 14 wants IValue complete before ATen/ops
#include <ATen/ops/embedding.h>
#include <ATen/ops/embedding_dense_backward.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstdint>

namespace cohort::models {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

constexpr const char* kTable = "table";

// In the order of the indices, so that equal ones add up to the same bits every time.
void add_rows(const at::Tensor& gradient, const at::Tensor& rows, const at::Tensor& indices) {
  const std::int64_t width = gradient.size(1);
  float* const table = gradient.data_ptr<float>();
  const float* row = rows.data_ptr<float>();
  const std::int64_t* const index = indices.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < indices.numel(); ++i, row += width) {
    float* const target = table + index[i] * width;
    for (std::int64_t j = 0; j < width; ++j) target[j] += row[j];
  }
}

struct EmbeddingFunction : public torch::autograd::Function<EmbeddingFunction> {
  // The value is an argument of its own so that the output is known to depend on it.
  static Variable forward(AutogradContext* context, const Variable& value, const Variable& indices,
                          Parameter* table) {
    context->save_for_backward({indices});
    context->saved_data[kTable] = static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(table));
    return at::embedding(value, indices);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    auto& table = *reinterpret_cast<Parameter*>(
        static_cast<std::intptr_t>(context->saved_data[kTable].toInt()));
    const at::Tensor indices = context->get_saved_variables()[0].contiguous();
    const at::Tensor rows = gradients[0].to(table.gradient.scalar_type()).contiguous();
    if (!table.accumulate) table.gradient.zero_();
    if (rows.is_cpu()) {
      add_rows(table.gradient, rows, indices);
    } else {
      // Adding rows there has no fixed order; this sorts first.
      table.gradient.add_(at::embedding_dense_backward(rows, indices, table.gradient.size(0),
                                                       /*padding_idx=*/-1,
                                                       /*scale_grad_by_freq=*/false));
    }
    table.accumulate = true;
    return {Variable(), Variable(), Variable()};
  }
};

}  // namespace

at::Tensor embedding_with_gradient_in_place(const at::Tensor& indices, Parameter& table) {
  return EmbeddingFunction::apply(table.value, indices, &table);
}

}  // namespace cohort::models
