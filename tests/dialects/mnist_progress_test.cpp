#include "dialects/mnist_progress.h"

#include <gtest/gtest.h>

#include <vector>

#include "dialects/memory.h"

namespace cohort::dialects {
namespace {

TEST(MnistLines, AreTheExamplesByteForByte) {
  EXPECT_EQ(mnist_batch_line({8900, 17, 100, 550, 4.0152, 59.39}),
            "Step: 8900,  Epoch: 17,  Batch: 100 of 550,  Cost: 4.0152,  AvgTime: 59.39ms");
  EXPECT_EQ(mnist_batch_line({11000, 20, 550, 550, 3.3322, 25.31}),
            "Step: 11000,  Epoch: 20,  Batch: 550 of 550,  Cost: 3.3322,  AvgTime: 25.31ms");
  EXPECT_EQ(mnist_batch_line({1, 1, 7, 7, 0.5, 0.125}),
            "Step: 1,  Epoch:  1,  Batch:   7 of   7,  Cost: 0.5000,  AvgTime: 0.12ms");
}

TEST(MnistRecordWhen, IsolatesThePrintedSteps) {
  const auto when = mnist_record_when(250);
  std::vector<Step> asked;
  for (Step done = 1; done <= 500; ++done) {
    if (when(done)) asked.push_back(done);
  }
  EXPECT_EQ(asked, (std::vector<Step>{99, 100, 199, 200, 249, 250, 349, 350, 449, 450, 499, 500}));
  const auto short_epoch = mnist_record_when(1);
  EXPECT_TRUE(short_epoch(1) && short_epoch(2));
}

class MnistProgressTest : public testing::Test {
 protected:
  void record(Step step, double loss, std::optional<std::int64_t> updates = {}) {
    metrics::StepRecord record;
    record.step = step;
    record.loss = loss;
    record.updates = updates;
    progress_->recorded(record);
  }

  void evaluate(double top1) {
    metrics::EvaluationRecord record;
    record.top1 = top1;
    progress_->evaluated(record);
  }

  double now_ = 10;
  Memory out_;
  Memory notes_;
  std::unique_ptr<engine::Progress> progress_ =
      make_mnist_progress(out_.stream(), notes_.stream(), [this] { return now_; });
};

TEST_F(MnistProgressTest, PrintsEveryHundredBatchesAndTheLast) {
  now_ = 12;  // two seconds of waiting for the others
  progress_->begin({.total_steps = 300, .steps_per_epoch = 150}, 0);
  record(99, 9);
  now_ = 13;
  record(100, 4.5);
  record(149, 9);
  now_ = 14;
  record(150, 4.25);  // fifty batches in a second are 10 ms over a hundred, as in the example
  now_ = 15;
  record(250, 4);
  now_ = 17;
  record(300, 3.5);
  progress_->note("a note");
  now_ = 17.5;
  evaluate(0.2849);
  progress_->end();
  EXPECT_EQ(out_.text(),
            "Step: 100,  Epoch:  1,  Batch: 100 of 150,  Cost: 4.5000,  AvgTime: 10.00ms\n"
            "Step: 150,  Epoch:  1,  Batch: 150 of 150,  Cost: 4.2500,  AvgTime: 10.00ms\n"
            "Step: 250,  Epoch:  2,  Batch: 100 of 150,  Cost: 4.0000,  AvgTime: 10.00ms\n"
            "Step: 300,  Epoch:  2,  Batch: 150 of 150,  Cost: 3.5000,  AvgTime: 20.00ms\n"
            "Test-Accuracy: 0.28\n"
            "Total Time: 7.50s\n"
            "Final Cost: 3.5000\n"
            "done\n");
  EXPECT_EQ(notes_.text(), "a note\n");
}

TEST_F(MnistProgressTest, CountsTheUpdatesOfAllWorkers) {
  progress_->begin({.total_steps = 550, .steps_per_epoch = 550}, 0);
  record(100, 1, 187);
  EXPECT_EQ(out_.text().substr(0, 12), "Step: 187,  ");
}

TEST_F(MnistProgressTest, IsNotDoneWhenItFailedOrWasInterrupted) {
  progress_->begin({.total_steps = 550, .steps_per_epoch = 550}, 0);
  progress_->end();
  EXPECT_EQ(out_.text(), "");
}

}  // namespace
}  // namespace cohort::dialects
