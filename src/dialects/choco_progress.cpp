#include "dialects/choco_progress.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

namespace cohort::dialects {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLogRecords = 1000;
constexpr double kMebibyte = 1024.0 * 1024.0;

// As Python writes a float.
std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  const std::string text = fmt::format("{}", value);
  return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
}

// As Python writes a dictionary.
std::string dictionary_text(const Json& object) {
  std::string text = "{";
  for (const auto& [key, value] : object.items()) {
    if (text.size() > 1) text += ", ";
    text += "'" + key + "': ";
    if (value.is_string()) {
      text += "'" + value.get<std::string>() + "'";
    } else if (value.is_number_float()) {
      text += float_text(value.get<double>());
    } else {
      text += value.dump();
    }
  }
  return text + "}";
}

// Totals of what the steps of rank 0 spent their time with.
class Timings {
 public:
  void add(const metrics::StepRecord& record) {
    totals_["load_data"] += record.data_seconds;
    totals_["forward_and_backward_pass"] += record.compute_seconds;
    totals_["sync_and_apply_grad"] += record.exchange_seconds + record.update_seconds;
    totals_["sync_and_apply_grad.exchange"] += record.exchange_seconds;
    totals_["sync_and_apply_grad.update"] += record.update_seconds;
    steps_ += record.steps;
  }

  // `seconds`: since the first step began.
  std::string table(double seconds) const {
    std::string text =
        "--- Timer summary ------------------------\n"
        "  Event   |  Count | Average time |  Frac.\n";
    const auto steps = static_cast<double>(std::max<std::int64_t>(1, steps_));
    double together = 0;
    for (const auto& [event, total] : totals_) {
      if (event.find('.') == std::string::npos) together += total / steps;
      text += fmt::format("- {:30s} | {:6d} | {:11.5f}s | {:5.1f}%\n", event, steps_, total / steps,
                          100 * total / std::max(1e-9, seconds));
    }
    const std::string rule = "-------------------------------------------\n";
    return text + rule +
           fmt::format("- {:30s}| {:6d} | {:11.5f}s |\n", "total_averaged_time", steps_, together) +
           rule;
  }

  static std::vector<std::pair<const char*, double>> events(const metrics::StepRecord& record) {
    const auto steps = static_cast<double>(std::max<std::int64_t>(1, record.steps));
    return {{"load_data", record.data_seconds / steps},
            {"forward_and_backward_pass", record.compute_seconds / steps},
            {"sync_and_apply_grad", (record.exchange_seconds + record.update_seconds) / steps}};
  }

 private:
  std::map<std::string, double> totals_;
  std::int64_t steps_ = 0;
};

class ChocoProgress final : public engine::Progress {
 public:
  ChocoProgress(std::FILE* out, std::FILE* notes, ChocoProgressOptions options)
      : out_(out), notes_(notes), options_(std::move(options)), text_(options_.earlier_text) {
    log_number_ = options_.first_log;
  }

  void begin(const engine::ProgressPlan& plan, Step first_step) override {
    text_data_ = plan.text;
    recall_best(first_step);
    began_ = options_.now();
    print("=>>>> start training and validation.\n=>>>> enter the training.\n\n");
  }

  // What belongs to the step before has come when the next one is over.
  void step(Step) override { finish_step(); }

  void recorded(const metrics::StepRecord& record) override {
    const auto rank = static_cast<std::size_t>(record.rank);
    const int receivers = rank < options_.receivers.size() ? options_.receivers[rank] : 1;
    const double messages =
        static_cast<double>(std::max<std::int64_t>(1, record.steps)) * std::max(1, receivers);
    Json values = {
        {"time", options_.wall_time()},
        {"rank", record.rank},
        {"epoch", record.epoch},
        {"local_index", record.step},
        {"n_bits_to_transmit", static_cast<double>(record.bytes_sent) / messages / kMebibyte}};
    values.update(scores(record));
    show("runtime", values, {{"split", "train"}});
    if (options_.track_time) {
      for (const auto& [event, seconds] : Timings::events(record)) {
        log("timer", {{"epoch", record.epoch}, {"value", seconds}}, {{"event", event}});
      }
    }
    if (record.rank != 0) return;
    timings_.add(record);
    table_due_ = options_.display_time;
  }

  void evaluated(const metrics::EvaluationRecord& record) override { tested_.push_back(record); }

  void note(const std::string& line) override {
    std::fputs((line + "\n").c_str(), notes_);
    std::fflush(notes_);
  }

  // Also called for a run that failed or was interrupted.
  void end() override {
    finish_step();
    save_log();
  }

 private:
  void finish_step() {
    if (table_due_) print(timings_.table(options_.now() - began_));
    table_due_ = false;
    if (tested_.empty()) return;
    print("Enter validation phase.\n");
    show_tests("test", options_.averages ? "averaged" : "local");
    show_tests("worker", "local");
    show_best();
    print("Finished validation.\n");
    tested_.clear();
    save_log();
  }

  // Of a step or a test.
  template <typename Record>
  Json scores(const Record& record) const {
    if (text_data_) return {{"loss", record.loss}, {"ppl", std::exp(record.loss)}};
    return {{"loss", record.loss}, {"top1", 100 * record.top1}, {"top5", 100 * record.top5}};
  }

  void show_tests(const std::string& split, const std::string& whose) {
    bool first = true;
    for (const metrics::EvaluationRecord& record : tested_) {
      if (record.split != split) continue;
      if (first) say("eval the " + whose + " model on full val data.");
      first = false;
      Json values = {
          {"time", options_.wall_time()}, {"rank", record.rank}, {"epoch", record.epoch}};
      values.update(scores(record));
      show("runtime", values, {{"split", "test"}, {"type", whose + "_model_on_full_val"}});
      if (!record.consensus_distance) continue;
      log("stat",
          {{"rank", record.rank},
           {"epoch", record.epoch},
           {"distance", *record.consensus_distance}},
          {{"split", "test"}, {"type", "averaged_model"}});
    }
  }

  // Of the tests before `first_step`; a run that was stopped may have had later ones, which it
  // repeats now.
  void recall_best(Step first_step) {
    std::map<Step, std::vector<metrics::EvaluationRecord>> by_step;
    for (const metrics::EvaluationRecord& record : options_.earlier_tests) {
      if (record.step <= first_step) by_step[record.step].push_back(record);
    }
    for (const auto& [step, tests] : by_step) take_best(tests);
  }

  // The mean of the workers' own models where they are tested, as in the original. Whether there
  // was anything that counts.
  bool take_best(const std::vector<metrics::EvaluationRecord>& tests) {
    double sum = 0;
    int count = 0;
    const std::string split = options_.tests_workers ? "worker" : "test";
    for (const metrics::EvaluationRecord& record : tests) {
      if (record.split != split) continue;
      sum += text_data_ ? std::exp(record.loss) : 100 * record.top1;
      ++count;
    }
    if (count == 0) return false;
    const double performance = sum / count;
    // The lowest perplexity, or the highest accuracy.
    const bool better = text_data_ ? performance < best_ : performance > best_;
    if (best_epoch_ < 0 || better) {
      best_ = performance;
      best_epoch_ = tests.back().epoch;
    }
    return true;
  }

  void show_best() {
    if (!take_best(tested_)) return;
    const metrics::EvaluationRecord& last = tested_.back();
    log("runtime",
        {{"time", options_.wall_time()}, {"rank", 0}, {"epoch", last.epoch}, {"best_perf", best_}},
        {{"split", "test"}, {"type", "local_model_avg"}});
    say(fmt::format(
        "best performance at local index {} (best epoch {:.3f}, current epoch {:.3f}): {}.",
        last.step, best_epoch_, last.epoch, float_text(best_)));
  }

  void show(const char* name, const Json& values, const Json& tags) {
    print(fmt::format("{}: {} ({})\n", name, dictionary_text(values), dictionary_text(tags)));
    log(name, values, tags);
  }

  void log(const char* name, const Json& values, const Json& tags) {
    Json record = {{"measurement", name}};
    record.update(values);
    record.update(tags);
    log_.push_back(std::move(record));
    if (log_.size() < kLogRecords) return;
    save_log();
    log_.clear();
    ++log_number_;
  }

  void say(const std::string& line) {
    const std::string dated = options_.wall_time() + "\t" + line + "\n";
    text_ += dated;
    print(dated);
  }

  // A log that cannot be written is no reason to stop a run.
  void save_log() {
    try {
      if (!log_.empty()) {
        options_.save(fmt::format("log-{}.json", log_number_), Json(log_).dump(1) + "\n");
      }
      if (!text_.empty()) options_.save("log.txt", text_);
    } catch (const std::exception& error) {
      note(std::string("warning: ") + error.what());
    }
  }

  void print(const std::string& text) {
    std::fputs(text.c_str(), out_);
    std::fflush(out_);
  }

  std::FILE* out_;
  std::FILE* notes_;
  ChocoProgressOptions options_;
  double began_ = 0;
  bool text_data_ = false;  // words: perplexities instead of accuracies
  Timings timings_;
  bool table_due_ = false;
  std::vector<metrics::EvaluationRecord> tested_;  // since the last step
  double best_ = 0;
  double best_epoch_ = -1;  // below 0: none yet
  std::vector<Json> log_;   // of the file that is being filled
  int log_number_ = 1;
  std::string text_;  // of log.txt
};

}  // namespace

std::unique_ptr<engine::Progress> make_choco_progress(std::FILE* out, std::FILE* notes,
                                                      ChocoProgressOptions options) {
  return std::make_unique<ChocoProgress>(out, notes, std::move(options));
}

}  // namespace cohort::dialects
