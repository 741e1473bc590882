#include "engine/progress.h"

#include <spdlog/fmt/fmt.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "metrics/over_ranks.h"

namespace cohort::engine {
namespace {

constexpr double kRedrawSeconds = 0.1;
constexpr double kPlainSeconds = 10;
constexpr std::size_t kShortestBar = 8;
constexpr std::size_t kLongestBar = 24;
constexpr std::size_t kNarrow = 60;  // columns below which there is no bar

std::size_t terminal_columns(std::FILE* out) {
  winsize size = {};
  const bool known = ::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return known ? size.ws_col : 80;
}

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

std::string evaluation_text(const metrics::EvaluationRecord& record, bool text) {
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
  explicit Pace(const metrics::TotalsSink& totals) : totals_(totals) {}

  void begin(const ProgressPlan& plan, Step first_step) {
    plan_ = plan;
    first_ = first_step;
    done_ = first_step;
    start_ = Clock::now();
  }
  void step(Step done) { done_ = done; }
  void evaluating(double share) {
    if (evaluated_share_ == 0) evaluation_start_ = Clock::now();
    evaluated_share_ = std::max(share, 1e-6);
  }
  void evaluated(double seconds) {
    evaluation_seconds_ = seconds;
    all_evaluations_seconds_ += seconds;
    evaluated_share_ = 0;
  }
  // Of at most `width` characters: what matters least is left out.
  std::string text(std::size_t width = std::string::npos) const {
    std::vector<Part> parts = all_parts();
    while (length_of(parts) > width && parts.size() > 1) {
      parts.erase(std::max_element(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
        return a.weight > b.weight;
      }));
    }
    std::string text;
    for (const Part& part : parts) text += (text.empty() ? "" : kBetween) + part.text;
    return text.substr(0, width);
  }

  bool is_text() const { return plan_.text; }

  double share() const {
    return static_cast<double>(done_) / static_cast<double>(std::max<Step>(1, plan_.total_steps));
  }

 private:
  struct Part {
    int weight;  // the higher, the longer it stays
    std::string text;
  };
  static constexpr const char* kBetween = "  ";

  static std::size_t length_of(const std::vector<Part>& parts) {
    std::size_t length = 0;
    for (const Part& part : parts) length += part.text.size() + (length == 0 ? 0 : 2);
    return length;
  }

  std::vector<Part> all_parts() const {
    const Step epochs = (plan_.total_steps + plan_.steps_per_epoch - 1) / plan_.steps_per_epoch;
    const Step epoch = std::min(done_ / plan_.steps_per_epoch + 1, epochs);
    std::vector<Part> parts = {{4, fmt::format("epoch {}/{}", plan_.earlier_epochs + epoch,
                                               plan_.earlier_epochs + epochs)},
                               {3, fmt::format("step {}/{}", done_, plan_.total_steps)}};
    const metrics::StepRecord last = totals_.newest();
    if (last.steps > 0) {
      const double seconds = std::max(1e-9, metrics::training_seconds(last));
      parts.push_back({5, fmt::format("loss {:.4f}", last.loss)});
      if (is_text()) parts.push_back({2, fmt::format("perplexity {:.1f}", std::exp(last.loss))});
      parts.push_back({1, fmt::format("top-1 {:.1f}%", 100 * last.top1)});
      parts.push_back({6, fmt::format("{:.0f} {}/s", metrics::samples_per_second(last),
                                      is_text() ? "words" : "samples")});
      parts.push_back({0, fmt::format("data {:.0f}%", 100 * last.data_seconds / seconds)});
    }
    if (evaluated_share_ > 0) {
      parts.push_back({8, fmt::format("evaluating {:.0f}%", 100 * evaluated_share_)});
    }
    if (done_ > first_) parts.push_back({7, duration_text(seconds_left()) + " left"});
    return parts;
  }

  // Of the steps, at the pace so far, and of the evaluations, each as long as the last one.
  double seconds_left() const {
    const Clock::time_point now = Clock::now();
    const double evaluating = evaluated_share_ > 0 ? seconds_between(evaluation_start_, now) : 0;
    const double training = seconds_between(start_, now) - all_evaluations_seconds_ - evaluating;
    double left = training / static_cast<double>(done_ - first_) *
                  static_cast<double>(plan_.total_steps - done_);
    double each = evaluation_seconds_;
    Step evaluations = evaluations_left();
    if (evaluated_share_ > 0) {
      each = evaluating / evaluated_share_;
      left += each - evaluating;
      evaluations = std::max<Step>(0, evaluations - 1);
    }
    return left + static_cast<double>(evaluations) * each;
  }

  // The one under way included.
  Step evaluations_left() const {
    if (!plan_.evaluates) return 0;
    const Step every = plan_.evaluate_every;
    if (every <= 0) return 1;
    const Step begun = evaluated_share_ > 0 ? std::max<Step>(0, done_ - 1) : done_;
    const Step on_the_way = (plan_.total_steps - 1) / every - begun / every;
    return std::max<Step>(0, on_the_way) + 1;
  }

  ProgressPlan plan_;
  Step first_ = 0;
  Step done_ = 0;
  Clock::time_point start_;
  double evaluated_share_ = 0;  // of the evaluation under way; 0: none is
  Clock::time_point evaluation_start_;
  double evaluation_seconds_ = 0;  // that the last one took
  double all_evaluations_seconds_ = 0;
  const metrics::TotalsSink& totals_;
};

class Bar final : public Progress {
 public:
  Bar(std::FILE* out, const metrics::TotalsSink& totals) : out_(out), pace_(totals) {}

  void begin(const ProgressPlan& plan, Step first_step) override { pace_.begin(plan, first_step); }
  void recorded(const metrics::StepRecord&) override {}
  void evaluating(double share) override {
    pace_.evaluating(share);
    draw();
  }
  void evaluated(const metrics::EvaluationRecord& record) override {
    if (record.split != "worker") pace_.evaluated(record.seconds);
    note(evaluation_text(record, pace_.is_text()));
  }
  void end() override { erase(); }

  void step(Step done) override {
    pace_.step(done);
    draw();
  }

  void note(const std::string& line) override {
    erase();
    put(out_, fmt::format("{}\n", line));
  }

 private:
  void draw() {
    const Clock::time_point now = Clock::now();
    if (seconds_between(drawn_, now) < kRedrawSeconds) return;
    drawn_ = now;
    // \x1b[K erases what a longer line before left behind. The last column stays free: some
    // terminals begin a new line there.
    put(out_, fmt::format("\r\x1b[?7l{}\x1b[K\x1b[?7h", line(terminal_columns(out_) - 1)));
  }

  // The bar gets what the figures leave of the width; where that is little, there is none.
  std::string line(std::size_t width) const {
    constexpr std::size_t kFrame = 3;  // brackets and a space
    const std::string all = pace_.text();
    const std::size_t room = width > all.size() + kFrame ? width - all.size() - kFrame : 0;
    const std::size_t bar_width = std::clamp(room, kShortestBar, kLongestBar);
    if (width < kNarrow) return pace_.text(width);
    const auto full = static_cast<std::size_t>(pace_.share() * static_cast<double>(bar_width));
    std::string bar(full, '=');
    if (full < bar_width) bar += '>';
    bar.resize(bar_width, ' ');
    return fmt::format("[{}] {}", bar, pace_.text(width - bar_width - kFrame));
  }

  void erase() { put(out_, fmt::format("\r\x1b[K")); }

  std::FILE* out_;
  Pace pace_;
  Clock::time_point drawn_;
};

class Plain final : public Progress {
 public:
  Plain(std::FILE* out, const metrics::TotalsSink& totals) : out_(out), pace_(totals) {}

  void begin(const ProgressPlan& plan, Step first_step) override {
    pace_.begin(plan, first_step);
    printed_ = Clock::now();
  }
  void step(Step done) override { pace_.step(done); }
  void recorded(const metrics::StepRecord&) override { say_now_and_then(); }
  void evaluating(double share) override {
    pace_.evaluating(share);
    say_now_and_then();
  }
  void evaluated(const metrics::EvaluationRecord& record) override {
    if (record.split != "worker") pace_.evaluated(record.seconds);
    note(evaluation_text(record, pace_.is_text()));
  }
  void note(const std::string& line) override { put(out_, fmt::format("{}\n", line)); }
  void end() override {}

 private:
  void say_now_and_then() {
    const Clock::time_point now = Clock::now();
    if (seconds_between(printed_, now) < kPlainSeconds) return;
    printed_ = now;
    note(pace_.text());
  }

  std::FILE* out_;
  Pace pace_;
  Clock::time_point printed_;
};

class Quiet final : public Progress {
 public:
  explicit Quiet(std::FILE* out) : out_(out) {}

  void begin(const ProgressPlan&, Step) override {}
  void step(Step) override {}
  void recorded(const metrics::StepRecord&) override {}
  void evaluated(const metrics::EvaluationRecord&) override {}
  void note(const std::string& line) override { put(out_, line + "\n"); }
  void end() override {}

 private:
  std::FILE* out_;
};

class Silent final : public Progress {
 public:
  void begin(const ProgressPlan&, Step) override {}
  void step(Step) override {}
  void recorded(const metrics::StepRecord&) override {}
  void evaluated(const metrics::EvaluationRecord&) override {}
  void note(const std::string&) override {}
  void end() override {}
};

}  // namespace

std::unique_ptr<Progress> make_silent_progress() { return std::make_unique<Silent>(); }
std::unique_ptr<Progress> make_progress_bar(std::FILE* out, const metrics::TotalsSink& totals) {
  return std::make_unique<Bar>(out, totals);
}
std::unique_ptr<Progress> make_plain_progress(std::FILE* out, const metrics::TotalsSink& totals) {
  return std::make_unique<Plain>(out, totals);
}
std::unique_ptr<Progress> make_quiet_progress(std::FILE* out) {
  return std::make_unique<Quiet>(out);
}

}  // namespace cohort::engine
