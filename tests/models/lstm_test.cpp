#include "models/lstm.h"

#include <ATen/core/ivalue.h>  // clang 14 wants IValue complete before ATen/ops
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "models/model_testing.h"

namespace cohort::models {
namespace {

constexpr std::int64_t kWords = 23;

std::unique_ptr<Model> small_lstm(double dropout = 0, bool tied = true) {
  ModelOptions options = usual_options("lstm");
  options.classes = kWords;
  options.rnn_hidden = 6;
  options.rnn_layers = 2;
  options.dropout = dropout;
  options.tie_weights = tied;
  return models().make("lstm", options, seeded(1));
}

at::Tensor text(std::int64_t rows, std::int64_t words, std::uint64_t seed = 2) {
  return at::randint(0, kWords, {rows, 1, 1, words}, seeded(seed)).to(at::kFloat);
}

TEST(Lstm, GivesARowForEveryWord) {
  const auto model = small_lstm();
  EXPECT_EQ(model->forward(text(3, 5)).sizes(), (at::IntArrayRef{15, kWords}));
  EXPECT_EQ(model->carried().sizes(), (at::IntArrayRef{2, 2, 3, 6}));
}

TEST(Lstm, GoesOnWhereTheBatchBeforeEnded) {
  const c10::NoGradGuard no_gradient;
  const auto model = small_lstm();
  model->store().set_training(false);
  const at::Tensor whole = text(2, 7);
  const at::Tensor at_once = model->forward(whole).view({2, 7, kWords});
  model->set_carried({});
  const at::Tensor first = model->forward(whole.narrow(3, 0, 3)).view({2, 3, kWords});
  const at::Tensor state = model->carried();
  const at::Tensor rest = model->forward(whole.narrow(3, 3, 4)).view({2, 4, kWords});
  EXPECT_TRUE(at::cat({first, rest}, 1).allclose(at_once, 1e-5, 1e-6));
  // What it was told to remember decides, not what it read last.
  model->set_carried(state);
  EXPECT_TRUE(model->forward(whole.narrow(3, 3, 4)).view({2, 4, kWords}).equal(rest));
  model->set_carried({});
  EXPECT_FALSE(model->forward(whole.narrow(3, 3, 4)).view({2, 4, kWords}).allclose(rest));
}

TEST(Lstm, CarriesNoGradientsAlong) {
  const auto model = small_lstm();
  model->forward(text(2, 3));
  EXPECT_FALSE(model->carried().requires_grad());
  model->forward(text(2, 3)).sum().backward();  // the first graph is gone
}

TEST(Lstm, WritesTheGradientsInPlaceThatAutogradFinds) {
  for (const bool tied : {true, false}) {
    const auto plain = small_lstm(0, tied);
    const auto in_place = small_lstm(0, tied);
    const at::Tensor labels = at::randint(0, kWords, {12}, seeded(5)).to(at::kLong);
    for (Parameter& parameter : in_place->store().parameters()) {
      parameter.gradient = at::zeros_like(parameter.value).detach().fill_(77);
    }
    for (const auto& model : {plain.get(), in_place.get()}) {
      at::cross_entropy_loss(model->forward(text(3, 4)), labels).backward();
    }
    for (std::size_t i = 0; i < plain->store().parameters().size(); ++i) {
      const Parameter& expected = plain->store().parameters()[i];
      const Parameter& found = in_place->store().parameters()[i];
      const bool by_autograd = found.value.grad().defined();
      EXPECT_EQ(by_autograd, found.name.starts_with("rnn.")) << found.name;
      const at::Tensor gradient = by_autograd ? found.value.grad() : found.gradient;
      EXPECT_TRUE(gradient.allclose(expected.value.grad(), 1e-5, 1e-7)) << found.name;
    }
  }
}

TEST(Lstm, DropsUnitsByItsOwnGeneratorOnly) {
  const auto one = small_lstm(0.5);
  const auto other = small_lstm(0.5);
  one->store().set_generator(seeded(9));
  other->store().set_generator(seeded(9));
  const at::Tensor first = one->forward(text(2, 4));
  EXPECT_TRUE(other->forward(text(2, 4)).equal(first));
  one->set_carried({});
  EXPECT_FALSE(one->forward(text(2, 4)).equal(first));
}

}  // namespace
}  // namespace cohort::models
