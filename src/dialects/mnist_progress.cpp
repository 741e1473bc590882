#include "dialects/mnist_progress.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

namespace cohort::dialects {
namespace {

bool is_printed(Step in_epoch, Step steps_per_epoch) {
  return in_epoch % kMnistFrequency == 0 || in_epoch == steps_per_epoch;
}

class MnistProgress final : public engine::Progress {
 public:
  MnistProgress(std::FILE* out, std::FILE* notes, std::function<double()> now)
      : out_(out), notes_(notes), now_(std::move(now)), began_(now_()), last_line_(began_) {}

  void begin(const engine::ProgressPlan& plan, Step) override {
    steps_per_epoch_ = std::max<Step>(1, plan.steps_per_epoch);
    last_line_ = now_();
  }

  void step(Step) override {}

  void recorded(const metrics::StepRecord& record) override {
    cost_ = record.loss;
    const Step in_epoch = (record.step - 1) % steps_per_epoch_ + 1;
    if (!is_printed(in_epoch, steps_per_epoch_)) return;
    const double now = now_();
    print(mnist_batch_line({.step = record.updates.value_or(record.step),
                            .epoch = (record.step - 1) / steps_per_epoch_ + 1,
                            .batch = in_epoch,
                            .batches = steps_per_epoch_,
                            .cost = record.loss,
                            .average_ms = (now - last_line_) * 1000 / kMnistFrequency}));
    last_line_ = now;
  }

  void evaluated(const metrics::EvaluationRecord& record) override {
    print(fmt::format("Test-Accuracy: {:.2f}", record.top1));
    print(fmt::format("Total Time: {:.2f}s", now_() - began_));
    print(fmt::format("Final Cost: {:.4f}", cost_));
    evaluated_ = true;
  }

  void note(const std::string& line) override {
    std::fputs((line + "\n").c_str(), notes_);
    std::fflush(notes_);
  }

  // Also called for a run that failed or was interrupted, which is not evaluated.
  void end() override {
    if (evaluated_) print("done");
  }

 private:
  // A display that cannot be written to is no reason to stop a run.
  void print(const std::string& line) {
    std::fputs((line + "\n").c_str(), out_);
    std::fflush(out_);
  }

  std::FILE* out_;
  std::FILE* notes_;
  std::function<double()> now_;
  double began_;
  double last_line_;
  double cost_ = 0;
  Step steps_per_epoch_ = 1;
  bool evaluated_ = false;
};

}  // namespace

std::string mnist_batch_line(const MnistBatch& batch) {
  return fmt::format(
      "Step: {:d},  Epoch: {:2d},  Batch: {:3d} of {:3d},  Cost: {:.4f},  AvgTime: {:.2f}ms",
      batch.step, batch.epoch, batch.batch, batch.batches, batch.cost, batch.average_ms);
}

std::unique_ptr<engine::Progress> make_mnist_progress(std::FILE* out, std::FILE* notes,
                                                      std::function<double()> now) {
  return std::make_unique<MnistProgress>(out, notes, std::move(now));
}

std::function<bool(Step done)> mnist_record_when(Step steps_per_epoch) {
  return [steps_per_epoch](Step done) {
    const Step in_epoch = (done - 1) % steps_per_epoch + 1;
    return is_printed(in_epoch, steps_per_epoch) ||
           (in_epoch < steps_per_epoch && is_printed(in_epoch + 1, steps_per_epoch));
  };
}

}  // namespace cohort::dialects
