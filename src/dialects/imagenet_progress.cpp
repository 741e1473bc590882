#include "dialects/imagenet_progress.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace cohort::dialects {
namespace {

std::string position(Step index, Step total) {
  const std::size_t width = fmt::formatted_size("{}", total);
  return fmt::format("[{:{}d}/{:d}]", index, width, total);
}

std::string scores(const ImagenetBatch& value, const ImagenetBatch& mean) {
  return fmt::format("Loss {:.4e} ({:.4e})\tAcc@1 {:6.2f} ({:6.2f})\tAcc@5 {:6.2f} ({:6.2f})",
                     value.loss, mean.loss, value.top1, mean.top1, value.top5, mean.top5);
}

// Sums over records: of several ranks, and of the steps of an epoch.
struct Sums {
  double samples = 0;
  double steps = 0;
  double seconds = 0;
  double data_seconds = 0;
  double loss = 0;
  double top1 = 0;
  double top5 = 0;

  void add(const Sums& other) {
    samples += other.samples;
    steps += other.steps;
    seconds += other.seconds;
    data_seconds += other.data_seconds;
    loss += other.loss;
    top1 += other.top1;
    top5 += other.top5;
  }

  ImagenetBatch mean() const {
    const double of_samples = samples > 0 ? samples : 1;
    const double of_steps = steps > 0 ? steps : 1;
    return {seconds / of_steps, data_seconds / of_steps, loss / of_samples, 100 * top1 / of_samples,
            100 * top5 / of_samples};
  }
};

// The records that the ranks made of the same steps.
Sums combine(const std::vector<metrics::StepRecord>& records) {
  Sums sums;
  Rank lowest = records.front().rank;
  for (const metrics::StepRecord& record : records) {
    const auto samples = static_cast<double>(record.samples);
    sums.samples += samples;
    sums.steps = std::max(sums.steps, static_cast<double>(record.steps));
    sums.seconds = std::max(sums.seconds, record.data_seconds + record.compute_seconds +
                                              record.exchange_seconds + record.update_seconds);
    sums.loss += samples * record.loss;
    sums.top1 += samples * record.top1;
    sums.top5 += samples * record.top5;
    if (record.rank <= lowest) {
      lowest = record.rank;
      sums.data_seconds = record.data_seconds;
    }
  }
  return sums;
}

class ImagenetProgress final : public engine::Progress {
 public:
  ImagenetProgress(std::FILE* out, std::FILE* notes, ImagenetProgressOptions options)
      : out_(out), notes_(notes), options_(std::move(options)) {}

  void begin(const engine::ProgressPlan& plan, Step first_step) override {
    steps_per_epoch_ = std::max<Step>(1, plan.steps_per_epoch);
    for (const std::string& line : options_.opening) print(line);
    if (options_.resume.empty()) return;
    if (first_step == 0) {
      print(fmt::format("=> no checkpoint found at '{}'", options_.resume));
      return;
    }
    print(fmt::format("=> loading checkpoint '{}'", options_.resume));
    print(fmt::format("=> loaded checkpoint '{}' (epoch {})", options_.resume,
                      static_cast<Step>(plan.first_epoch)));
  }

  void step(Step) override {}

  void recorded(const metrics::StepRecord& record) override {
    if (!pending_.empty() && pending_.front().step != record.step) finish_set();
    pending_.push_back(record);
    if (record.rank == options_.ranks - 1) finish_set();
  }

  void evaluated(const metrics::EvaluationRecord& record) override {
    finish_set();
    const Step at_once = std::max<Step>(1, options_.eval_samples);
    const Step batches = std::max<Step>(1, (record.samples + at_once - 1) / at_once);
    const ImagenetBatch mean{record.seconds / static_cast<double>(batches), 0, record.loss,
                             100 * record.top1, 100 * record.top5};
    print(imagenet_test_line(batches, batches, mean, mean));
    print(imagenet_score_line(mean.top1, mean.top5));
  }

  void note(const std::string& line) override {
    std::fputs((line + "\n").c_str(), notes_);
    std::fflush(notes_);
  }

  void end() override { finish_set(); }

 private:
  // A rank without samples in an epoch's last batch makes no record, so a set may also be finished
  // by what comes after it.
  void finish_set() {
    if (pending_.empty()) return;
    const Sums sums = combine(pending_);
    const Step done = pending_.front().step;
    const Position at = position_of(pending_.front().epoch);
    pending_.clear();
    if (at.epoch != epoch_) {
      epoch_ = at.epoch;
      of_epoch_ = {};
    }
    of_epoch_.add(sums);
    if ((done - 1) % steps_per_epoch_ % options_.print_freq != 0) return;
    print(imagenet_epoch_line(at.epoch, at.index, steps_per_epoch_, sums.mean(), of_epoch_.mean()));
  }

  struct Position {
    std::int64_t epoch;
    Step index;  // of the last step taken, in its epoch, from 0
  };

  // From the epochs behind the run, because a run that goes on with another number of workers has
  // taken steps of another size before.
  Position position_of(double epochs) const {
    constexpr double kRounding = 1e-9;
    const double epoch = std::max(0.0, std::ceil(epochs - kRounding) - 1);
    const double steps = (epochs - epoch) * static_cast<double>(steps_per_epoch_);
    return {static_cast<std::int64_t>(epoch),
            std::clamp<Step>(std::llround(steps) - 1, 0, steps_per_epoch_ - 1)};
  }

  // A display that cannot be written to is no reason to stop a run.
  void print(const std::string& line) {
    std::fputs((line + "\n").c_str(), out_);
    std::fflush(out_);
  }

  std::FILE* out_;
  std::FILE* notes_;
  ImagenetProgressOptions options_;
  Step steps_per_epoch_ = 1;
  std::int64_t epoch_ = -1;                   // of the run, from 0; before the first record none
  Sums of_epoch_;                             // since its beginning
  std::vector<metrics::StepRecord> pending_;  // of one step, until all ranks' are there
};

}  // namespace

std::string imagenet_epoch_line(std::int64_t epoch, Step index, Step total,
                                const ImagenetBatch& value, const ImagenetBatch& mean) {
  return fmt::format("Epoch: [{}]{}\tTime {:6.3f} ({:6.3f})\tData {:6.3f} ({:6.3f})\t{}", epoch,
                     position(index, total), value.time, mean.time, value.data, mean.data,
                     scores(value, mean));
}

std::string imagenet_test_line(Step index, Step total, const ImagenetBatch& value,
                               const ImagenetBatch& mean) {
  return fmt::format("Test: {}\tTime {:6.3f} ({:6.3f})\t{}", position(index, total), value.time,
                     mean.time, scores(value, mean));
}

std::string imagenet_score_line(double top1_percent, double top5_percent) {
  return fmt::format(" * Acc@1 {:.3f} Acc@5 {:.3f}", top1_percent, top5_percent);
}

std::unique_ptr<engine::Progress> make_imagenet_progress(std::FILE* out, std::FILE* notes,
                                                         ImagenetProgressOptions options) {
  return std::make_unique<ImagenetProgress>(out, notes, std::move(options));
}

std::function<bool(Step done)> imagenet_record_when(std::int64_t print_freq, Step steps_per_epoch) {
  return [print_freq, steps_per_epoch](Step done) {
    const Step in_epoch = (done - 1) % steps_per_epoch + 1;  // steps of this epoch taken, from 1
    return (in_epoch - 1) % print_freq == 0 || in_epoch % print_freq == 0 ||
           in_epoch == steps_per_epoch;
  };
}

}  // namespace cohort::dialects
