#include "engine/evaluator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "engine/counting_dataset.h"
#include "engine/small_training.h"

namespace cohort::engine::test {
namespace {

using testing::AllOf;
using testing::Each;
using testing::SizeIs;

EvaluatorOptions in_batches_of(std::int64_t batch, int loader_threads = 1) {
  EvaluatorOptions options;
  options.batch = batch;
  options.loader_threads = loader_threads;
  return options;
}

TEST(Evaluator, ReadsEverySampleOnceAlsoWhenTheLastBatchIsShort) {
  PlainModel model;
  for (const std::int64_t size : {1, 15, 16, 17, 33}) {
    const CountingDataset data(std::make_unique<data::ArrayDataset>(small_images(size)));
    const Evaluation result = evaluate(model, data, in_batches_of(16, 2));
    EXPECT_EQ(result.samples, size);
    EXPECT_THAT(data.reads(), AllOf(SizeIs(size), Each(1)));
  }
}

TEST(Evaluator, GivesTheSameResultForEveryBatchSize) {
  NoisyModel model;  // in evaluation its statistics are fixed and dropout is off
  const data::ArrayDataset data = small_images(50);
  const Evaluation whole = evaluate(model, data, in_batches_of(50));
  for (const std::int64_t batch : {1, 7, 25, 500}) {
    const Evaluation parts = evaluate(model, data, in_batches_of(batch, 0));
    EXPECT_NEAR(parts.loss, whole.loss, 1e-5) << batch;
    EXPECT_EQ(parts.top1, whole.top1) << batch;
    EXPECT_EQ(parts.top5, whole.top5) << batch;
  }
}

TEST(Evaluator, ComputesWhatOneForwardPassWould) {
  PlainModel model;
  const data::ArrayDataset data = small_images(23);
  const BatchTensors all = batch_of(data, 0, 23);
  const at::Tensor logits = model.forward(all.inputs).detach();
  const Evaluation result = evaluate(model, data, in_batches_of(10));
  EXPECT_NEAR(result.loss, at::cross_entropy_loss(logits, all.labels).item<double>(), 1e-5);
  EXPECT_DOUBLE_EQ(result.top1, logits.argmax(1).eq(all.labels).sum().item<double>() / 23);
  EXPECT_EQ(result.top5, 1.0);
  EXPECT_GT(result.seconds, 0);
}

// A signal waits for the pass under way: of ResNet-50 on photographs a second or two of one core.
TEST(Evaluator, TakesFewSamplesAtOnceWhereTheirWorkIsLarge) {
  const auto taken = [](double parameters, double elements) {
    return samples_of_a_pass(parameters * elements, 500);
  };
  EXPECT_EQ(taken(25.6e6, 3 * 224 * 224), 16);  // resnet50
  EXPECT_EQ(taken(36.5e6, 3 * 32 * 32), 31);    // WRN-28-10
  EXPECT_EQ(taken(0.27e6, 3 * 32 * 32), 500);   // resnet20
  EXPECT_EQ(taken(61706, 28 * 28), 500);        // lenet
  EXPECT_EQ(samples_of_a_pass(1e13, 4), 4) << "what the user asks for is not exceeded";
}

TEST(Evaluator, ChangesNothingOfTheModel) {
  const data::ArrayDataset data = small_images(20);
  for (const bool training : {true, false}) {
    NoisyModel model;
    methods::Replica replica(model, {});
    model.store().set_training(training);
    const at::Tensor parameters = replica.parameters().clone();
    const at::Tensor statistics = replica.statistics().clone();
    evaluate(model, data, in_batches_of(8));
    EXPECT_TRUE(replica.parameters().equal(parameters));
    EXPECT_TRUE(replica.statistics().equal(statistics));
    EXPECT_EQ(model.store().training(), training);
  }
}

}  // namespace
}  // namespace cohort::engine::test
