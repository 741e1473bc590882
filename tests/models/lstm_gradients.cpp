// lstm_gradients WORDS UNITS LAYERS TIED ROWS PIECE PREFIX
//
// Builds a language model, gives every parameter values that follow from its place, runs two pieces
// of a text through it, the second going on from the first, and writes of the second PREFIX.loss
// (the loss as text) and PREFIX.NAME (each parameter's gradient, float32 in the machine's byte
// order). compare_lstm.py does the same in Python.
#include <ATen/Parallel.h>
#include <ATen/core/ivalue.h>  // clang 14 wants IValue complete before ATen/ops
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>

#include "models/registry.h"

namespace {

// Exact in both languages: multiples of 1/512.
void fill(const at::Tensor& tensor, std::int64_t number) {
  float* values = tensor.data_ptr<float>();
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    values[i] = static_cast<float>((i * 37 + number * 101) % 257 - 128) / 512;
  }
}

int run(char** arguments) {
  const auto number = [&](int index) { return std::stoll(arguments[index]); };
  cohort::models::ModelOptions options;
  options.text = true;
  options.classes = number(1);
  options.rnn_hidden = number(2);
  options.rnn_layers = number(3);
  options.tie_weights = number(4) != 0;
  options.dropout = 0;
  const std::int64_t rows = number(5);
  const std::int64_t piece = number(6);
  const std::string prefix = arguments[7];

  const auto model = cohort::models::models().make("lstm", options, at::Generator());
  std::int64_t count = 0;
  for (cohort::models::Parameter& parameter : model->store().parameters()) {
    fill(parameter.value.detach(), count++);
    parameter.gradient = at::zeros_like(parameter.value).detach();
  }
  at::Tensor loss;
  for (std::int64_t part = 0; part < 2; ++part) {
    at::Tensor words = at::empty({rows, 1, 1, piece});
    at::Tensor labels = at::empty({rows * piece}, at::kLong);
    for (std::int64_t i = 0; i < rows * piece; ++i) {
      words.data_ptr<float>()[i] = static_cast<float>((i * i + 7 * part) % options.classes);
      labels.data_ptr<std::int64_t>()[i] = (3 * i + part) % options.classes;
    }
    loss = at::cross_entropy_loss(model->forward(words), labels);
  }
  loss.backward();
  std::FILE* file = std::fopen((prefix + ".loss").c_str(), "w");
  if (file == nullptr) return 1;
  std::fprintf(file, "%.9g\n", loss.item<double>());
  std::fclose(file);
  for (const cohort::models::Parameter& parameter : model->store().parameters()) {
    // In place, or where autograd left it.
    const at::Tensor gradient =
        (parameter.value.grad().defined() ? parameter.value.grad() : parameter.gradient)
            .contiguous();
    std::ofstream out(prefix + "." + parameter.name, std::ios::binary);
    out.write(static_cast<const char*>(gradient.data_ptr()),
              static_cast<std::streamsize>(gradient.nbytes()));
  }
  return 0;
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 8) {
    std::fprintf(stderr, "usage: lstm_gradients WORDS UNITS LAYERS TIED ROWS PIECE PREFIX\n");
    return 2;
  }
  at::set_num_threads(1);
  try {
    return run(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lstm_gradients: %s\n", error.what());
    return 1;
  }
}
