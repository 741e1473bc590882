#include "dialects/imagenet_progress.h"

#include <gtest/gtest.h>

#include <memory>
#include <sstream>

#include "dialects/memory.h"

namespace cohort::dialects {
namespace {

constexpr Step kEpoch = 3;  // steps

metrics::StepRecord record_of(Step step, Rank rank, double loss, std::int64_t samples,
                              Step steps_per_epoch = kEpoch) {
  metrics::StepRecord record;
  record.step = step;
  record.epoch = static_cast<double>(step) / static_cast<double>(steps_per_epoch);
  record.rank = rank;
  record.loss = loss;
  record.samples = samples;
  record.steps = 1;
  return record;
}

TEST(ImagenetLines, AreTheExamplesByteForByte) {
  EXPECT_EQ(imagenet_epoch_line(0, 10, 5005, {0.202, 0.054, 8.2512, 0, 0.39},
                                {2.525, 0.192, 8.0758, 0.14, 0.60}),
            "Epoch: [0][  10/5005]\tTime  0.202 ( 2.525)\tData  0.054 ( 0.192)\t"
            "Loss 8.2512e+00 (8.0758e+00)\tAcc@1   0.00 (  0.14)\tAcc@5   0.39 (  0.60)");
  EXPECT_EQ(imagenet_epoch_line(12, 0, 3, {123.4567, 0, 0.00012345, 100, 100},
                                {123.4567, 0, 0.00012345, 100, 100}),
            "Epoch: [12][0/3]\tTime 123.457 (123.457)\tData  0.000 ( 0.000)\t"
            "Loss 1.2345e-04 (1.2345e-04)\tAcc@1 100.00 (100.00)\tAcc@5 100.00 (100.00)");
  EXPECT_EQ(imagenet_test_line(20, 196, {0.5, 0, 6.5, 12.5, 25}, {0.75, 0, 6.25, 10, 20}),
            "Test: [ 20/196]\tTime  0.500 ( 0.750)\tLoss 6.5000e+00 (6.2500e+00)\t"
            "Acc@1  12.50 ( 10.00)\tAcc@5  25.00 ( 20.00)");
  EXPECT_EQ(imagenet_score_line(16.016, 36.08), " * Acc@1 16.016 Acc@5 36.080");
}

TEST(ImagenetRecordWhen, IsolatesThePrintedSteps) {
  const auto when = imagenet_record_when(10, 25);
  std::vector<Step> asked;
  for (Step done = 1; done <= 50; ++done) {
    if (when(done)) asked.push_back(done);
  }
  // Printed: the steps 0, 10, 20 of both epochs, that is done = 1, 11, 21 and 26, 36, 46.
  EXPECT_EQ(asked, (std::vector<Step>{1, 10, 11, 20, 21, 25, 26, 35, 36, 45, 46, 50}));
  for (Step done = 1; done <= 6; ++done) EXPECT_TRUE(imagenet_record_when(1, 3)(done));
}

TEST(ImagenetProgress, PrintsABatchAndTheMeanOfTheEpochSoFar) {
  Memory out;
  Memory notes;
  const auto progress = make_imagenet_progress(
      out.stream(), notes.stream(), {.print_freq = 2, .opening = {"=> creating model 'resnet50'"}});
  progress->begin({.total_steps = 6, .steps_per_epoch = kEpoch}, 0);
  metrics::StepRecord record = record_of(1, 0, 4, 8);
  record.top1 = 0.25;
  record.top5 = 0.5;
  record.data_seconds = 0.5;
  record.compute_seconds = 0.25;
  record.exchange_seconds = 0.125;
  record.update_seconds = 0.125;
  progress->recorded(record);
  record = record_of(2, 0, 1, 8);
  progress->recorded(record);  // not printed, but counted
  record = record_of(3, 0, 2, 4);
  record.compute_seconds = 2;
  progress->recorded(record);
  progress->recorded(record_of(4, 0, 8, 8));  // the next epoch begins anew
  progress->note("a note");
  progress->end();
  EXPECT_EQ(out.text(),
            "=> creating model 'resnet50'\n"
            "Epoch: [0][0/3]\tTime  1.000 ( 1.000)\tData  0.500 ( 0.500)\t"
            "Loss 4.0000e+00 (4.0000e+00)\tAcc@1  25.00 ( 25.00)\tAcc@5  50.00 ( 50.00)\n"
            "Epoch: [0][2/3]\tTime  2.000 ( 1.000)\tData  0.000 ( 0.167)\t"
            "Loss 2.0000e+00 (2.4000e+00)\tAcc@1   0.00 ( 10.00)\tAcc@5   0.00 ( 20.00)\n"
            "Epoch: [1][0/3]\tTime  0.000 ( 0.000)\tData  0.000 ( 0.000)\t"
            "Loss 8.0000e+00 (8.0000e+00)\tAcc@1   0.00 (  0.00)\tAcc@5   0.00 (  0.00)\n");
  EXPECT_EQ(notes.text(), "a note\n");
}

TEST(ImagenetProgress, CountsARecordOfSeveralStepsAsThatMany) {
  Memory out;
  const auto progress = make_imagenet_progress(out.stream(), out.stream(), {.print_freq = 3});
  progress->begin({.total_steps = 4, .steps_per_epoch = 4}, 0);
  progress->recorded(record_of(1, 0, 1, 2, 4));
  metrics::StepRecord two = record_of(3, 0, 2, 4, 4);
  two.steps = 2;
  two.compute_seconds = 6;
  progress->recorded(two);
  progress->recorded(record_of(4, 0, 5, 2, 4));
  EXPECT_NE(out.text().find("[3/4]\tTime  0.000 ( 1.500)\tData  0.000 ( 0.000)\t"
                            "Loss 5.0000e+00 (2.5000e+00)"),
            std::string::npos)
      << out.text();
}

TEST(ImagenetProgress, PutsTheRanksTogether) {
  Memory out;
  const auto progress =
      make_imagenet_progress(out.stream(), out.stream(), {.print_freq = 1, .ranks = 3});
  progress->begin({.total_steps = 2, .steps_per_epoch = 2}, 0);
  metrics::StepRecord first = record_of(1, 0, 3, 2, 2);
  first.data_seconds = 1;
  metrics::StepRecord slowest = record_of(1, 1, 6, 1, 2);
  slowest.compute_seconds = 5;
  progress->recorded(first);
  progress->recorded(slowest);
  EXPECT_EQ(out.text(), "");
  progress->recorded(record_of(1, 2, 6, 1, 2));
  const std::string line =
      "Epoch: [0][0/2]\tTime  5.000 ( 5.000)\tData  1.000 ( 1.000)\t"
      "Loss 4.5000e+00 (4.5000e+00)\tAcc@1   0.00 (  0.00)\tAcc@5   0.00 (  0.00)\n";
  EXPECT_EQ(out.text(), line);
  // A last batch in which rank 2 had no sample: the end of the run finishes the line.
  progress->recorded(record_of(2, 0, 1, 1, 2));
  progress->recorded(record_of(2, 1, 2, 1, 2));
  EXPECT_EQ(out.text(), line);
  progress->end();
  EXPECT_NE(out.text().find("[1/2]\tTime  0.000 ( 2.500)\tData  0.000 ( 0.500)\t"
                            "Loss 1.5000e+00 (3.5000e+00)"),
            std::string::npos)
      << out.text();
}

TEST(ImagenetProgress, ScoresAnEvaluation) {
  Memory out;
  const auto progress = make_imagenet_progress(out.stream(), out.stream(), {.eval_samples = 256});
  progress->begin({.total_steps = 1, .steps_per_epoch = 1}, 0);
  metrics::EvaluationRecord record;
  record.samples = 50'000;
  record.loss = 4.5;
  record.top1 = 0.16016;
  record.top5 = 0.3608;
  record.seconds = 98;
  progress->evaluated(record);
  EXPECT_EQ(out.text(),
            "Test: [196/196]\tTime  0.500 ( 0.500)\tLoss 4.5000e+00 (4.5000e+00)\t"
            "Acc@1  16.02 ( 16.02)\tAcc@5  36.08 ( 36.08)\n"
            " * Acc@1 16.016 Acc@5 36.080\n");
}

TEST(ImagenetProgress, TellsWhatItResumes) {
  for (const Step first : {0, 7}) {
    Memory out;
    const auto progress = make_imagenet_progress(out.stream(), out.stream(), {.resume = "runs/a"});
    progress->begin({.total_steps = 9, .steps_per_epoch = 3, .first_epoch = 2.4}, first);
    EXPECT_EQ(out.text(), first == 0 ? "=> no checkpoint found at 'runs/a'\n"
                                     : "=> loading checkpoint 'runs/a'\n"
                                       "=> loaded checkpoint 'runs/a' (epoch 2)\n");
  }
}

TEST(ImagenetProgress, NumbersEpochsAsTheRecordsDo) {
  Memory out;
  const auto progress = make_imagenet_progress(out.stream(), out.stream(), {});
  progress->begin({.total_steps = 2, .steps_per_epoch = 1, .earlier_epochs = 30}, 0);
  metrics::StepRecord record = record_of(2, 0, 1, 1, 1);
  record.epoch = 32;
  progress->recorded(record);
  EXPECT_EQ(out.text().substr(0, 12), "Epoch: [31][");
}

// Begun with 100 steps an epoch, gone on with 25 after one and a half epochs.
TEST(ImagenetProgress, ShowsTheEpochOfARunWhoseStepsChanged) {
  Memory out;
  const auto progress = make_imagenet_progress(out.stream(), out.stream(), {.print_freq = 1});
  progress->begin({.total_steps = 300, .steps_per_epoch = 25}, 150);
  metrics::StepRecord record = record_of(151, 0, 1, 1);
  record.epoch = 1.5 + 1.0 / 25;
  progress->recorded(record);
  record.step = 163;
  record.epoch = 2;
  progress->recorded(record);
  record.step = 164;
  record.epoch = 2 + 1.0 / 25;
  progress->recorded(record);
  std::vector<std::string> places;
  std::istringstream lines(out.text());
  for (std::string line; std::getline(lines, line);) {
    places.push_back(line.substr(0, line.find('\t')));
  }
  EXPECT_EQ(places, (std::vector<std::string>{"Epoch: [1][13/25]", "Epoch: [1][24/25]",
                                              "Epoch: [2][ 0/25]"}));
}

}  // namespace
}  // namespace cohort::dialects
