#include "engine/classification.h"

#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/small_training.h"

namespace cohort::engine::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Guesses {
  at::Tensor logits;
  at::Tensor labels;
};

Guesses random_guesses(std::int64_t samples, std::int64_t classes) {
  at::Generator generator = make_generator(11);
  return {at::empty({samples, classes}).normal_(0, 2, generator),
          at::empty({samples}, at::kLong).random_(0, classes, generator)};
}

ClassificationSums::Values sums_of(const at::Tensor& logits, const at::Tensor& labels) {
  ClassificationSums sums;
  sums.add(at::scalar_tensor(0.5, at::kFloat), logits, labels);
  return sums.values();
}

at::Tensor row(std::initializer_list<float> values) {
  return at::tensor(std::vector<float>(values)).unsqueeze(0);
}

at::Tensor label(std::int64_t value) { return at::full({1}, value, at::kLong); }

class WithAuxiliary final : public models::Model {
 public:
  explicit WithAuxiliary(at::Tensor logits)
      : models::Model(make_generator(1)), logits_(std::move(logits)) {}
  at::Tensor forward(const at::Tensor&) override { return logits_; }
  std::vector<models::AuxiliaryOutput> auxiliary() const override { return {{logits_, 0.3}}; }

 private:
  at::Tensor logits_;
};

TEST(ClassificationLoss, IsTorchsCrossEntropyWithAndWithoutSmoothing) {
  const Guesses guesses = random_guesses(17, 9);
  const PlainModel model;
  for (const double smoothing : {0.0, 0.1}) {
    const double expected = at::cross_entropy_loss(guesses.logits, guesses.labels, {},
                                                   at::Reduction::Mean, -100, smoothing)
                                .item<double>();
    const at::Tensor loss = classification_loss(model, guesses.logits, guesses.labels, smoothing);
    EXPECT_EQ(loss.item<double>(), expected);
  }
}

TEST(ClassificationLoss, SmoothingMixesInTheMeanOverAllClasses) {
  const Guesses guesses = random_guesses(17, 9);
  const at::Tensor log_p = at::log_softmax(guesses.logits.to(at::kDouble), 1);
  const at::Tensor right = log_p.gather(1, guesses.labels.unsqueeze(1)).squeeze(1);
  const double expected = -(0.8 * right + 0.2 * log_p.mean(1)).mean().item<double>();
  const at::Tensor loss = classification_loss(PlainModel(), guesses.logits, guesses.labels, 0.2);
  EXPECT_NEAR(loss.item<double>(), expected, 1e-5);
}

TEST(ClassificationLoss, AddsAuxiliaryOutputsOnlyWhileTraining) {
  const Guesses guesses = random_guesses(6, 5);
  WithAuxiliary model(guesses.logits);
  const double plain = at::cross_entropy_loss(guesses.logits, guesses.labels).item<double>();
  model.store().set_training(true);
  EXPECT_NEAR(classification_loss(model, guesses.logits, guesses.labels, 0).item<double>(),
              1.3 * plain, 1e-5);
  model.store().set_training(false);
  EXPECT_EQ(classification_loss(model, guesses.logits, guesses.labels, 0).item<double>(), plain);
}

TEST(ClassificationSums, AgreeWithArgmaxAndTopkOnRandomLogits) {
  const Guesses guesses = random_guesses(1000, 12);
  const at::Tensor labels = guesses.labels.unsqueeze(1);
  const auto top1 = guesses.logits.argmax(1).eq(guesses.labels).sum().item<std::int64_t>();
  const auto top5 = std::get<1>(guesses.logits.topk(5, 1)).eq(labels).sum().item<std::int64_t>();
  const ClassificationSums::Values sums = sums_of(guesses.logits, guesses.labels);
  EXPECT_EQ(sums.top1, top1);
  EXPECT_EQ(sums.top5, top5);
  EXPECT_EQ(sums.samples, 1000);
  EXPECT_DOUBLE_EQ(sums.loss, 500);
}

TEST(ClassificationSums, ReadLogitsInAnyLayout) {
  const Guesses guesses = random_guesses(50, 12);
  const at::Tensor transposed = guesses.logits.t().contiguous().t();
  EXPECT_EQ(sums_of(transposed, guesses.labels).top1, sums_of(guesses.logits, guesses.labels).top1);
}

TEST(ClassificationSums, OfEqualLogitsTheFirstClassWins) {
  const at::Tensor tie = row({1, 3, 3, 0});
  EXPECT_EQ(sums_of(tie, label(1)).top1, 1);
  EXPECT_EQ(sums_of(tie, label(2)).top1, 0);
  EXPECT_EQ(sums_of(tie, label(2)).top5, 1);
  const at::Tensor all_equal = row({0, 0, 0, 0, 0, 0});
  EXPECT_EQ(sums_of(all_equal, label(4)).top5, 1);
  EXPECT_EQ(sums_of(all_equal, label(5)).top5, 0);
}

TEST(ClassificationSums, ALogitThatIsNoNumberIsNeverRight) {
  for (const std::int64_t classes : {2, 3, 5, 8}) {
    const at::Tensor nothing = at::full({1, classes}, kNan);
    for (std::int64_t right = 0; right < classes; ++right) {
      const ClassificationSums::Values sums = sums_of(nothing, label(right));
      EXPECT_EQ(sums.top1, 0) << classes << " classes, label " << right;
      EXPECT_EQ(sums.top5, 0) << classes << " classes, label " << right;
    }
  }
  EXPECT_EQ(sums_of(row({kNan, 1, 0}), label(1)).top1, 0);
  EXPECT_EQ(sums_of(row({0, 1, kNan}), label(1)).top1, 0);
}

TEST(ClassificationSums, WithFewerThanFiveClassesEveryNumberIsInTheTopFive) {
  const Guesses guesses = random_guesses(40, 3);
  EXPECT_EQ(sums_of(guesses.logits, guesses.labels).top5, 40);
}

TEST(ClassificationSums, AddUpAndStartAnew) {
  const Guesses guesses = random_guesses(30, 6);
  ClassificationSums sums;
  sums.add(at::scalar_tensor(2.0, at::kFloat), guesses.logits.narrow(0, 0, 10),
           guesses.labels.narrow(0, 0, 10));
  sums.add(at::scalar_tensor(5.0, at::kFloat), guesses.logits.narrow(0, 10, 20),
           guesses.labels.narrow(0, 10, 20));
  EXPECT_DOUBLE_EQ(sums.values().loss, 120);
  EXPECT_EQ(sums.values().top1, sums_of(guesses.logits, guesses.labels).top1);
  sums.reset();
  EXPECT_EQ(sums.values().samples, 0);
  EXPECT_EQ(sums.values().loss, 0);
}

}  // namespace
}  // namespace cohort::engine::test
