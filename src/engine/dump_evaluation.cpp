#include "engine/dump_evaluation.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "core/clock.h"
#include "core/error.h"
#include "data/text.h"
#include "engine/assemble.h"
#include "engine/checkpointing.h"
#include "engine/device.h"
#include "engine/prepared_set.h"
#include "storage/file.h"
#include "storage/folder.h"

namespace cohort::engine {
namespace {

// Larger data sets are read again for every model.
constexpr std::int64_t kMaxPrepared = std::int64_t{4} << 30;

double seconds_of(const storage::FoundDump& dump, const storage::SafetensorsFile& file) {
  const auto found = file.metadata().find("seconds");
  if (found == file.metadata().end()) return static_cast<double>(dump.name.second);
  return std::strtod(found->second.c_str(), nullptr);
}

class DumpEvaluation {
 public:
  DumpEvaluation(const config::RunConfig& config, const data::Dataset& data,
                 const std::vector<storage::FoundDump>& dumps, const DumpEvaluationOptions& options)
      : config_(config), data_(data), dumps_(dumps), options_(options) {
    std::vector<std::int64_t> samples = all_samples(data);
    if (options.most_samples > 0 && options.most_samples < data.size()) {
      samples.resize(static_cast<std::size_t>(options.most_samples));
    }
    // A text is read in its order, by evaluate().
    const bool text = data::as_text(data) != nullptr;
    if (!text &&
        PreparedSet::bytes(data, static_cast<std::int64_t>(samples.size())) <= kMaxPrepared) {
      const auto model = build_model(config, data, InitialWeights::kLater);
      prepared_.emplace(data, samples,
                        evaluator_options(config, *model, parse_device(config.device)));
    } else if (samples.size() < static_cast<std::size_t>(data.size())) {
      throw ConfigError(
          "this data set cannot be cut for an evaluation, being too large or a text: use "
          "--test-size");
    }
  }

  DumpEvaluationReport run() {
    {
      const StopWatch watch(report_.seconds);
      std::vector<std::thread> threads;
      const auto jobs =
          std::min<std::size_t>(static_cast<std::size_t>(options_.jobs), dumps_.size());
      for (std::size_t job = 0; job < jobs; ++job) threads.emplace_back([this] { work(); });
      for (std::thread& thread : threads) thread.join();
    }
    if (failure_) std::rethrow_exception(failure_);
    return report_;
  }

 private:
  const storage::FoundDump* take() {
    const std::lock_guard lock(mutex_);
    const bool stop = failure_ || (options_.stop != nullptr && *options_.stop);
    return stop || next_ == dumps_.size() ? nullptr : &dumps_[next_++];
  }

  void work() {
    try {
      at::set_num_threads(1);
      const auto model = build_model(config_, data_, InitialWeights::kLater);
      const at::Device device = parse_device(config_.device);
      methods::Replica replica(*model, replica_options(config_, *model, device));
      const EvaluatorOptions evaluator = evaluator_options(config_, *model, device);
      while (const storage::FoundDump* dump = take()) {
        const auto score = score_of(*dump, *model, replica, evaluator);
        if (score) keep(*dump, *score);
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }

  std::optional<storage::DumpScore> score_of(const storage::FoundDump& dump, models::Model& model,
                                             methods::Replica& replica,
                                             const EvaluatorOptions& evaluator) {
    double seconds = 0;
    try {
      const storage::SafetensorsFile file = storage::SafetensorsFile::open(dump.model());
      restore_model(file, dump.model().string(), replica);
      seconds = seconds_of(dump, file);
    } catch (const FileError& error) {
      const std::lock_guard lock(mutex_);
      std::error_code ignored;
      const bool there = std::filesystem::exists(dump.model(), ignored);
      ++(there ? report_.damaged : report_.gone);
      if (there && options_.skipped) options_.skipped(error.what());
      return std::nullopt;
    }
    const Evaluation result =
        prepared_ ? evaluate(model, *prepared_) : evaluate(model, data_, evaluator);
    const bool usual = result.samples == options_.usual_samples;
    return storage::DumpScore{result.loss, result.top1, seconds, usual ? 0 : result.samples};
  }

  void keep(const storage::FoundDump& dump, const storage::DumpScore& score) {
    storage::AtomicFile file(dump.score());
    file.writer().write(storage::format_score(score) + "\n");
    file.commit(storage::Durability::kProcess);
    if (options_.delete_models) storage::remove_tree(dump.model());
    const std::lock_guard lock(mutex_);
    ++report_.evaluated;
    const auto left = static_cast<std::int64_t>(dumps_.size()) - report_.evaluated -
                      report_.damaged - report_.gone;
    if (options_.scored) options_.scored(dump, score, left);
  }

  const config::RunConfig& config_;
  const data::Dataset& data_;
  const std::vector<storage::FoundDump>& dumps_;
  const DumpEvaluationOptions& options_;
  std::optional<PreparedSet> prepared_;
  std::mutex mutex_;  // guards the rest
  std::size_t next_ = 0;
  DumpEvaluationReport report_;
  std::exception_ptr failure_;
};

}  // namespace

DumpEvaluationReport evaluate_dumps(const config::RunConfig& config, const data::Dataset& data,
                                    const std::vector<storage::FoundDump>& dumps,
                                    const DumpEvaluationOptions& options) {
  COHORT_CHECK(options.jobs >= 1, "somebody must do it");
  if (dumps.empty()) return {};
  return DumpEvaluation(config, data, dumps, options).run();
}

}  // namespace cohort::engine
