#include "engine/progress.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

namespace cohort {
namespace {

constexpr double kRedrawSeconds = 0.1;
constexpr double kPlainSeconds = 10;
constexpr Step kBarWidth = 24;

// A display that cannot be written to is no reason to stop a run.
void put(std::FILE* out, const std::string& text) {
  std::fputs(text.c_str(), out);
  std::fflush(out);
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<long>(std::max(0.0, std::round(seconds)));
  if (whole >= 3600) {
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  }
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

std::string evaluation_text(const EvaluationRecord& record, bool text) {
  const std::string perplexity =
      text ? fmt::format("  perplexity {:.2f}", std::exp(record.loss)) : "";
  const std::string whose =
      record.split == "worker" ? fmt::format("worker {} test", record.rank) : record.split;
  return fmt::format(
      "epoch {:.4g}  {} loss {:.4f}{}  top-1 {:.2f}%  top-5 {:.2f}%  [{} after start]",
      record.epoch, whose, record.loss, perplexity, 100 * record.top1, 100 * record.top5,
      duration_text(record.time_seconds));
}

// The state both kinds of progress share: where the run is and how fast it goes.
class Pace {
 public:
  void begin(const ProgressPlan& plan, Step first_step) {
    plan_ = plan;
    first_ = first_step;
    done_ = first_step;
    start_ = Clock::now();
  }
  void step(Step done) { done_ = done; }
  // The workers' records of the same steps become one.
  void recorded(const StepRecord& record) {
    if (record.step != last_.step) {
      last_ = record;
      return;
    }
    const auto before = static_cast<double>(last_.samples);
    const auto added = static_cast<double>(record.samples);
    last_.loss = (last_.loss * before + record.loss * added) / (before + added);
    last_.top1 = (last_.top1 * before + record.top1 * added) / (before + added);
    last_.samples += record.samples;
  }

  std::string text() const {
    const Step epochs = (plan_.total_steps + plan_.steps_per_epoch - 1) / plan_.steps_per_epoch;
    const Step epoch = std::min(done_ / plan_.steps_per_epoch + 1, epochs);
    std::string text =
        fmt::format("epoch {}/{}  step {}/{}", epoch, epochs, done_, plan_.total_steps);
    if (last_.steps > 0) {
      const double seconds = last_.data_seconds + last_.compute_seconds + last_.exchange_seconds +
                             last_.update_seconds;
      text += fmt::format("  loss {:.4f}{}  top-1 {:.1f}%  {:.0f} {}/s  data {:.0f}%", last_.loss,
                          is_text() ? fmt::format("  perplexity {:.1f}", std::exp(last_.loss)) : "",
                          100 * last_.top1, static_cast<double>(last_.samples) / seconds,
                          is_text() ? "words" : "samples", 100 * last_.data_seconds / seconds);
    }
    const double elapsed = seconds_between(start_, Clock::now());
    if (done_ > first_) {
      const double left = elapsed / static_cast<double>(done_ - first_) *
                          static_cast<double>(plan_.total_steps - done_);
      text += "  " + duration_text(left) + " left";
    }
    return text;
  }

  bool is_text() const { return plan_.text; }

  double share() const {
    return static_cast<double>(done_) / static_cast<double>(std::max<Step>(1, plan_.total_steps));
  }

 private:
  ProgressPlan plan_;
  Step first_ = 0;
  Step done_ = 0;
  Clock::time_point start_;
  StepRecord last_;
};

class Bar final : public Progress {
 public:
  explicit Bar(std::FILE* out) : out_(out) {}

  void begin(const ProgressPlan& plan, Step first_step) override { pace_.begin(plan, first_step); }
  void recorded(const StepRecord& record) override { pace_.recorded(record); }
  void evaluated(const EvaluationRecord& record) override {
    note(evaluation_text(record, pace_.is_text()));
  }
  void end() override { erase(); }

  void step(Step done) override {
    pace_.step(done);
    const Clock::time_point now = Clock::now();
    if (seconds_between(drawn_, now) < kRedrawSeconds) return;
    drawn_ = now;
    const auto full = static_cast<std::size_t>(pace_.share() * kBarWidth);
    std::string bar(full, '=');
    if (full < kBarWidth) bar += '>';
    bar.resize(kBarWidth, ' ');
    // \x1b[K erases what a longer line before left behind; the terminal cuts what is too wide.
    put(out_, fmt::format("\r\x1b[?7l[{}] {}\x1b[K\x1b[?7h", bar, pace_.text()));
  }

  void note(const std::string& line) override {
    erase();
    put(out_, fmt::format("{}\n", line));
  }

 private:
  void erase() { put(out_, fmt::format("\r\x1b[K")); }

  std::FILE* out_;
  Pace pace_;
  Clock::time_point drawn_;
};

class Plain final : public Progress {
 public:
  explicit Plain(std::FILE* out) : out_(out) {}

  void begin(const ProgressPlan& plan, Step first_step) override {
    pace_.begin(plan, first_step);
    printed_ = Clock::now();
  }
  void step(Step done) override { pace_.step(done); }
  void recorded(const StepRecord& record) override {
    pace_.recorded(record);
    const Clock::time_point now = Clock::now();
    if (seconds_between(printed_, now) < kPlainSeconds) return;
    printed_ = now;
    note(pace_.text());
  }
  void evaluated(const EvaluationRecord& record) override {
    note(evaluation_text(record, pace_.is_text()));
  }
  void note(const std::string& line) override { put(out_, fmt::format("{}\n", line)); }
  void end() override {}

 private:
  std::FILE* out_;
  Pace pace_;
  Clock::time_point printed_;
};

class Quiet final : public Progress {
 public:
  explicit Quiet(std::FILE* out) : out_(out) {}

  void begin(const ProgressPlan&, Step) override {}
  void step(Step) override {}
  void recorded(const StepRecord&) override {}
  void evaluated(const EvaluationRecord&) override {}
  void note(const std::string& line) override { put(out_, line + "\n"); }
  void end() override {}

 private:
  std::FILE* out_;
};

class Silent final : public Progress {
 public:
  void begin(const ProgressPlan&, Step) override {}
  void step(Step) override {}
  void recorded(const StepRecord&) override {}
  void evaluated(const EvaluationRecord&) override {}
  void note(const std::string&) override {}
  void end() override {}
};

}  // namespace

std::unique_ptr<Progress> make_silent_progress() { return std::make_unique<Silent>(); }
std::unique_ptr<Progress> make_progress_bar(std::FILE* out) { return std::make_unique<Bar>(out); }
std::unique_ptr<Progress> make_plain_progress(std::FILE* out) {
  return std::make_unique<Plain>(out);
}
std::unique_ptr<Progress> make_quiet_progress(std::FILE* out) {
  return std::make_unique<Quiet>(out);
}

}  // namespace cohort
