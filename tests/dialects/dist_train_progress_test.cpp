#include "dialects/dist_train_progress.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "dialects/memory.h"

namespace cohort::dialects {
namespace {

std::vector<Step> asked(const std::function<bool(Step)>& when, Step last) {
  std::vector<Step> steps;
  for (Step done = 1; done <= last; ++done) {
    if (when(done)) steps.push_back(done);
  }
  return steps;
}

TEST(NumpyText, IsTheShortestThatIsReadBackAsFloat32) {
  EXPECT_EQ(numpy_text(7.0336914), "7.0336914");
  EXPECT_EQ(numpy_text(7.43522), "7.43522");
  EXPECT_EQ(numpy_text(0), "0.0");
  EXPECT_EQ(numpy_text(1), "1.0");
  EXPECT_EQ(numpy_text(1.0 / 256), "0.00390625");
  EXPECT_EQ(numpy_text(1.0 / 96), "0.010416667");
  EXPECT_EQ(numpy_text(1e-5), "1e-05");
  EXPECT_EQ(numpy_text(std::numeric_limits<double>::quiet_NaN()), "nan");
}

TEST(DistTrainPasses, EndWithTheDataOrAfterTheIterations) {
  EXPECT_EQ(pass_steps(0, 48), 48);
  EXPECT_EQ(pass_steps(80, 48), 48);
  EXPECT_EQ(pass_steps(80, 1563), 80);
}

TEST(DistTrainRecordWhen, FollowsTheLinesOfEachProgram) {
  const auto when = [](PaddleRevision revision, std::int64_t skip = 0) {
    return dist_train_record_when(
        {.revision = revision, .passes = 1, .steps_per_pass = 70, .skip_batches = skip});
  };
  EXPECT_EQ(asked(when(PaddleRevision::kPublished), 70).size(), 70U);
  EXPECT_EQ(asked(when(PaddleRevision::kBatchMerge), 70),
            (std::vector<Step>{1, 30, 31, 60, 61, 70}));
  EXPECT_EQ(asked(when(PaddleRevision::kLater), 70), (std::vector<Step>{29, 30, 59, 60, 70}));
  EXPECT_EQ(asked(when(PaddleRevision::kLater, 5), 70), (std::vector<Step>{5, 29, 30, 59, 60, 70}));
}

TEST(DistTrainEvaluateWhen, IsTheEndOfEachPassFromTheFirstTested) {
  EXPECT_EQ(asked(dist_train_evaluate_when(0, 10), 35), (std::vector<Step>{10, 20, 30}));
  EXPECT_EQ(asked(dist_train_evaluate_when(2, 10), 35), (std::vector<Step>{30}));
  EXPECT_TRUE(asked(dist_train_evaluate_when(-1, 10), 35).empty());
}

class DistTrainProgressTest : public testing::Test {
 protected:
  void start(const DistTrainProgressOptions& options) {
    progress_ =
        make_dist_train_progress(out_.stream(), notes_.stream(), options, [this] { return now_; });
    progress_->begin({}, 0);
  }

  // One step of a second, then its record.
  void step(Step done, double loss, std::int64_t samples = 32, Rank rank = 0) {
    if (rank == 0) {
      now_ += 1;
      progress_->step(done);
    }
    metrics::StepRecord record;
    record.step = done;
    record.rank = rank;
    record.loss = loss;
    record.top1 = 0.25;
    record.top5 = 0.5;
    record.samples = samples;
    record.steps = 1;
    progress_->recorded(record);
  }

  void evaluate(Step done) {
    now_ += 100;
    metrics::EvaluationRecord record;
    record.step = done;
    record.loss = 6.5;
    record.top1 = 0.0125;
    record.top5 = 0.0625;
    progress_->evaluated(record);
  }

  double now_ = 5;
  Memory out_;
  Memory notes_;
  std::unique_ptr<engine::Progress> progress_;
};

TEST_F(DistTrainProgressTest, PrintsThePublishedLines) {
  start({.passes = 2, .steps_per_pass = 3, .skip_batches = 1});
  step(1, 7.0336914);
  step(2, 7.5);
  step(3, 7.25, 16);
  evaluate(3);
  step(4, 7);
  step(5, 6.75);
  step(6, 6.5, 16);
  evaluate(6);
  progress_->end();
  const std::string pass = "\nTotal examples: 48, total time: 2.00000, 24.00000 examples/sed\n\n";
  EXPECT_EQ(out_.text(),
            "Pass 0, batch 0, loss 7.0336914, accucacys: [0.25, 0.5]\n"
            "Pass 0, batch 1, loss 7.5, accucacys: [0.25, 0.5]\n"
            "Pass 0, batch 2, loss 7.25, accucacys: [0.25, 0.5]\n" +
                pass +
                "Pass: 0, Test Accuracy: [0.0125, 0.0625]\n\n"
                "Pass 1, batch 0, loss 7.0, accucacys: [0.25, 0.5]\n"
                "Pass 1, batch 1, loss 6.75, accucacys: [0.25, 0.5]\n"
                "Pass 1, batch 2, loss 6.5, accucacys: [0.25, 0.5]\n" +
                pass +
                "Pass: 1, Test Accuracy: [0.0125, 0.0625]\n\n"
                "total train time:  206\n");
}

TEST_F(DistTrainProgressTest, PrintsTheLaterLines) {
  start({.revision = PaddleRevision::kLater, .passes = 120, .steps_per_pass = 31});
  for (Step done = 1; done <= 31; ++done) step(done, 7.5);
  evaluate(31);
  EXPECT_EQ(out_.text(),
            "Pass [0/120], batch [30/31], loss 7.5, acc1: 0.25, acc5: 0.5, avg batch time 1.0000\n"
            "\nTotal examples: 992, total time: 31.00000, 32.00000 examples/sed\n\n"
            "Pass: 0, Test Loss 6.5, test acc1: 0.0125, test acc5: 0.0625\n\n");
}

TEST_F(DistTrainProgressTest, PutsTheTrainersTogether) {
  start({.passes = 1, .steps_per_pass = 2, .ranks = 2});
  step(1, 2, 30, 0);
  EXPECT_EQ(out_.text(), "");
  step(1, 5, 10, 1);
  EXPECT_EQ(out_.text(), "Pass 0, batch 0, loss 2.75, accucacys: [0.25, 0.5]\n");
  step(2, 3, 4, 0);  // in the last batch the other one had no samples
  progress_->end();
  EXPECT_NE(out_.text().find("Pass 0, batch 1, loss 3.0, "), std::string::npos);
  EXPECT_NE(out_.text().find("Total examples: 44, "), std::string::npos);
}

TEST_F(DistTrainProgressTest, AnInterruptedRunHasNoTotal) {
  start({.passes = 2, .steps_per_pass = 2});
  step(1, 2);
  progress_->note("a note");
  progress_->end();
  EXPECT_EQ(out_.text().find("total train time"), std::string::npos);
  EXPECT_EQ(notes_.text(), "a note\n");
}

}  // namespace
}  // namespace cohort::dialects
