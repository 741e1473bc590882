#include "models/lstm.h"

#include <ATen/core/ivalue.h>  // clang 14 wants IValue complete before ATen/ops
#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "models/embedding_function.h"
#include "models/initializers.h"
#include "models/layers.h"
#include "models/linear_function.h"
#include "models/option_checks.h"

namespace cohort::models {

namespace {

constexpr double kDropout = 0.4;

class Lstm final : public Model {
 public:
  Lstm(const ModelOptions& options, at::Generator generator)
      : Model(std::move(generator)),
        hidden_(options.rnn_hidden),
        dropout_(dropout_or(options, kDropout)) {
    const std::int64_t words = options.classes;
    encoder_ = store().add_parameter("encoder.weight", {words, hidden_}, ParameterKind::kWeight,
                                     uniform(0.1));
    for (std::int64_t layer = 0; layer < options.rnn_layers; ++layer) add_layer(layer);
    decoder_ = options.tie_weights ? encoder_
                                   : store().add_parameter("decoder.weight", {words, hidden_},
                                                           ParameterKind::kWeight, uniform(0.1));
    bias_ = store().add_parameter("decoder.bias", {words}, ParameterKind::kBias, constant(0.0));
  }

  at::Tensor forward(const at::Tensor& inputs) override {
    const std::int64_t rows = inputs.size(0);
    // One column a sample: layers go through the first dimension.
    const at::Tensor words = inputs.reshape({rows, -1}).t().to(at::kLong).contiguous();
    at::Tensor flow = dropout(store(), embed(words), dropout_);
    const at::Tensor before = state_for(rows, flow);
    std::vector<at::Tensor> hidden;
    std::vector<at::Tensor> cell;
    for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
      const auto index = static_cast<std::int64_t>(layer);
      // One layer at a time, because the dropout in between must draw from our generator.
      auto [output, last_hidden, last_cell] =
          at::lstm(flow,
                   {before.select(0, 0).narrow(0, index, 1).contiguous(),
                    before.select(0, 1).narrow(0, index, 1).contiguous()},
                   values_of(layer), /*has_biases=*/true, /*num_layers=*/1, /*dropout=*/0.0,
                   store().training(), /*bidirectional=*/false, /*batch_first=*/false);
      flow = dropout(store(), output, dropout_);
      hidden.push_back(last_hidden.detach().squeeze(0));
      cell.push_back(last_cell.detach().squeeze(0));
    }
    carried_ = at::stack({at::stack(hidden), at::stack(cell)});
    return decode(flow.transpose(0, 1).reshape({-1, hidden_}));
  }

  // Hidden and cell state x layers x N x units.
  at::Tensor carried() const override { return carried_; }
  void set_carried(const at::Tensor& state) override { carried_ = state; }

 private:
  using Layer = std::vector<Parameter*>;

  void add_layer(std::int64_t number) {
    const Initializer initialize = uniform(1.0 / std::sqrt(static_cast<double>(hidden_)));
    const std::string end = "_l" + std::to_string(number);
    const auto add = [&](const std::string& name, at::IntArrayRef shape, ParameterKind kind) {
      return store().add_parameter("rnn." + name + end, shape, kind, initialize);
    };
    const std::int64_t gates = 4 * hidden_;
    Parameter* input = add("weight_ih", {gates, hidden_}, ParameterKind::kWeight);
    Parameter* recurrent = add("weight_hh", {gates, hidden_}, ParameterKind::kWeight);
    Parameter* input_bias = add("bias_ih", {gates}, ParameterKind::kBias);
    layers_.push_back(
        {input, recurrent, input_bias, add("bias_hh", {gates}, ParameterKind::kBias)});
  }

  std::vector<at::Tensor> values_of(std::size_t layer) const {
    std::vector<at::Tensor> values;
    for (const Parameter* parameter : layers_[layer]) values.push_back(parameter->value);
    return values;
  }

  at::Tensor state_for(std::int64_t rows, const at::Tensor& like) const {
    if (!carried_.defined()) {
      return at::zeros({2, static_cast<std::int64_t>(layers_.size()), rows, hidden_},
                       like.options().requires_grad(false));
    }
    COHORT_CHECK(carried_.size(kCarriedRows) == rows, "a text goes on in as many rows as before");
    return carried_.to(like.device());
  }

  at::Tensor embed(const at::Tensor& words) const {
    const bool in_place = c10::GradMode::is_enabled() && encoder_->gradient.defined();
    return in_place ? embedding_with_gradient_in_place(words, *encoder_)
                    : at::embedding(encoder_->value, words);
  }

  at::Tensor decode(const at::Tensor& rows) const {
    const bool in_place = c10::GradMode::is_enabled() && decoder_->gradient.defined();
    return in_place ? linear_with_gradient_in_place(rows, *decoder_, bias_)
                    : at::linear(rows, decoder_->value, bias_->value);
  }

  std::int64_t hidden_;
  double dropout_;
  Parameter* encoder_;
  std::vector<Layer> layers_;
  Parameter* decoder_;
  Parameter* bias_;
  at::Tensor carried_;
};

}  // namespace

std::unique_ptr<Model> make_lstm(const ModelOptions& options, at::Generator generator) {
  check_options("lstm", options);
  if (options.rnn_hidden < 1 || options.rnn_layers < 1) {
    throw ConfigError("model 'lstm' needs at least one unit and one layer: --rnn-hidden " +
                      std::to_string(options.rnn_hidden) + ", --rnn-layers " +
                      std::to_string(options.rnn_layers));
  }
  return std::make_unique<Lstm>(options, std::move(generator));
}

}  // namespace cohort::models
