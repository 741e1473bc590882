#include "dialects/dist_train_progress.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace cohort::dialects {
namespace {

constexpr Step kSparse = 30;  // batches between the lines of the later programs

// Whether the batch that is the `in_pass`-th of its pass, from 1, is printed.
bool is_printed(PaddleRevision revision, Step in_pass) {
  switch (revision) {
    case PaddleRevision::kPublished:
      return true;
    case PaddleRevision::kBatchMerge:
      return (in_pass - 1) % kSparse == 0;
    case PaddleRevision::kLater:
      return in_pass % kSparse == 0;
  }
  return true;
}

Step in_pass(Step done, Step steps_per_pass) { return (done - 1) % steps_per_pass + 1; }

class DistTrainProgress final : public engine::Progress {
 public:
  DistTrainProgress(std::FILE* out, std::FILE* notes, const DistTrainProgressOptions& options,
                    std::function<double()> now)
      : out_(out), notes_(notes), options_(options), now_(std::move(now)), began_(now_()) {
    options_.steps_per_pass = std::max<Step>(1, options_.steps_per_pass);
  }

  void begin(const engine::ProgressPlan&, Step) override { start_pass(); }

  void step(Step done) override {
    last_step_ = done;
    // The first step of a pass that counts begins when the one before it ends.
    if (in_pass(done, options_.steps_per_pass) == options_.skip_batches) restart_ = true;
  }

  void recorded(const metrics::StepRecord& record) override {
    if (!pending_.empty() && pending_.front().step != record.step) finish_set();
    pending_.push_back(record);
    if (static_cast<int>(pending_.size()) == options_.ranks) finish_set();
  }

  void evaluated(const metrics::EvaluationRecord& record) override {
    finish_set();
    const Step pass = (record.step - 1) / options_.steps_per_pass;
    if (options_.revision == PaddleRevision::kLater) {
      print(fmt::format("Pass: {}, Test Loss {}, test acc1: {}, test acc5: {}\n", pass,
                        numpy_text(record.loss), numpy_text(record.top1), numpy_text(record.top5)));
    } else {
      print(fmt::format("Pass: {}, Test Accuracy: [{}, {}]\n", pass, numpy_text(record.top1),
                        numpy_text(record.top5)));
    }
    start_pass();  // the time of a test is not that of training
  }

  void note(const std::string& line) override {
    std::fputs((line + "\n").c_str(), notes_);
    std::fflush(notes_);
  }

  // Also called for a run that failed or was interrupted.
  void end() override {
    finish_set();
    if (last_step_ < options_.passes * options_.steps_per_pass) return;
    print(fmt::format("total train time:  {}", now_() - began_));
  }

 private:
  void start_pass() {
    pass_began_ = counted_from_ = now_();
    examples_ = 0;
    restart_ = false;
  }

  // A rank without samples in a last batch makes no record, so a set may also be finished by what
  // comes after it.
  void finish_set() {
    if (pending_.empty()) return;
    double samples = 0;
    double loss = 0;
    double top1 = 0;
    double top5 = 0;
    for (const metrics::StepRecord& record : pending_) {
      const auto weight = static_cast<double>(record.samples);
      samples += weight;
      loss += weight * record.loss;
      top1 += weight * record.top1;
      top5 += weight * record.top5;
    }
    const Step done = pending_.front().step;
    pending_.clear();
    const double whole = samples > 0 ? samples : 1;
    examples_ += static_cast<std::int64_t>(samples);
    const Step batch = in_pass(done, options_.steps_per_pass);
    if (is_printed(options_.revision, batch)) {
      print_batch(done, loss / whole, top1 / whole, top5 / whole);
    }
    if (restart_ && batch == options_.skip_batches) {
      counted_from_ = now_();
      examples_ = 0;
      restart_ = false;
    }
    if (batch == options_.steps_per_pass) finish_pass();
  }

  void print_batch(Step done, double loss, double top1, double top5) {
    const Step pass = (done - 1) / options_.steps_per_pass;
    const Step batch = in_pass(done, options_.steps_per_pass);
    if (options_.revision == PaddleRevision::kLater) {
      print(fmt::format(
          "Pass [{}/{}], batch [{}/{}], loss {}, acc1: {}, acc5: {}, avg batch time {:.4f}", pass,
          options_.passes, batch, options_.steps_per_pass, numpy_text(loss), numpy_text(top1),
          numpy_text(top5), (now_() - pass_began_) / static_cast<double>(batch)));
    } else {
      print(fmt::format("Pass {}, batch {}, loss {}, accucacys: [{}, {}]", pass, batch - 1,
                        numpy_text(loss), numpy_text(top1), numpy_text(top5)));
    }
  }

  void finish_pass() {
    // A pass no longer than what is skipped has nothing to show.
    const double seconds = std::max(1e-9, now_() - counted_from_);
    print(fmt::format("\nTotal examples: {}, total time: {:.5f}, {:.5f} examples/sed\n", examples_,
                      seconds, static_cast<double>(examples_) / seconds));
    start_pass();
  }

  // A display that cannot be written to is no reason to stop a run.
  void print(const std::string& line) {
    std::fputs((line + "\n").c_str(), out_);
    std::fflush(out_);
  }

  std::FILE* out_;
  std::FILE* notes_;
  DistTrainProgressOptions options_;
  std::function<double()> now_;
  double began_;
  double pass_began_ = 0;
  double counted_from_ = 0;
  std::int64_t examples_ = 0;  // since then
  bool restart_ = false;       // counting begins after the record of this step
  Step last_step_ = 0;
  std::vector<metrics::StepRecord> pending_;  // of one step, until all ranks' are there
};

}  // namespace

std::string numpy_text(double value) {
  const auto narrow = static_cast<float>(value);
  if (std::isnan(narrow)) return "nan";
  if (std::isinf(narrow)) return narrow > 0 ? "inf" : "-inf";
  const std::string text = fmt::format("{}", narrow);
  return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
}

Step pass_steps(std::int64_t iterations, Step steps_per_epoch) {
  return iterations > 0 ? std::min<Step>(iterations, steps_per_epoch) : steps_per_epoch;
}

std::unique_ptr<engine::Progress> make_dist_train_progress(std::FILE* out, std::FILE* notes,
                                                           const DistTrainProgressOptions& options,
                                                           std::function<double()> now) {
  return std::make_unique<DistTrainProgress>(out, notes, options, std::move(now));
}

std::function<bool(Step done)> dist_train_record_when(const DistTrainProgressOptions& options) {
  return [options](Step done) {
    const Step batch = in_pass(done, options.steps_per_pass);
    return is_printed(options.revision, batch) || is_printed(options.revision, batch + 1) ||
           batch == options.skip_batches || batch == options.steps_per_pass;
  };
}

std::function<bool(Step done)> dist_train_evaluate_when(std::int64_t first_tested,
                                                        Step steps_per_pass) {
  return [first_tested, steps_per_pass](Step done) {
    return first_tested >= 0 && done > 0 && done % steps_per_pass == 0 &&
           done / steps_per_pass > first_tested;
  };
}

}  // namespace cohort::dialects
