#include "apps/dump_scoring.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "apps/environment.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/text.h"
#include "engine/run_directory.h"
#include "storage/file.h"
#include "storage/folder.h"

namespace cohort::apps {
namespace {

constexpr std::uint64_t kMaxScoreBytes = 4096;
constexpr std::size_t kMaxNamed = 5;  // of files that do not belong there

// How far an evaluation has come.
class ScoringProgress {
 public:
  ScoringProgress(std::string what, std::int64_t total)
      : what_(std::move(what)), total_(total), terminal_(is_terminal(stderr)) {}

  void show(std::int64_t left) {
    const std::int64_t done = total_ - left;
    const double seconds = seconds_between(start_, Clock::now());
    if (terminal_) {
      constexpr std::int64_t kWidth = 30;
      const auto filled = static_cast<std::size_t>(kWidth * done / total_);
      fmt::print(stderr, "\r{} [{}{}] {} of {} models, {:.0f} s left \x1b[K", what_,
                 std::string(filled, '='), std::string(kWidth - filled, ' '), done, total_,
                 seconds / static_cast<double>(done) * static_cast<double>(left));
      std::fflush(stderr);
    } else if (done == total_ || done * 10 / total_ > shown_) {
      shown_ = done * 10 / total_;
      fmt::print(stderr, "{}  {} of {} models evaluated, {:.1f} s\n", what_, done, total_, seconds);
    }
  }

  // So that another line can be written.
  void clear() const {
    if (terminal_) fmt::print(stderr, "\r\x1b[K");
  }

 private:
  std::string what_;
  std::int64_t total_;
  bool terminal_;
  std::int64_t shown_ = 0;  // tenths
  Clock::time_point start_ = Clock::now();
};

void name_foreign(const std::vector<std::filesystem::path>& foreign) {
  if (foreign.empty()) return;
  fmt::print(stderr, "skipped: {} {} no dumped model:\n", foreign.size(),
             foreign.size() == 1 ? "file is" : "files are");
  for (std::size_t i = 0; i < std::min(foreign.size(), kMaxNamed); ++i) {
    fmt::print(stderr, "  {}\n", foreign[i].string());
  }
  if (foreign.size() > kMaxNamed) fmt::print(stderr, "  ...\n");
}

// A file that holds no score is as good as none.
std::optional<storage::DumpScore> sound_score(const storage::FoundDump& dump) {
  if (!dump.has_score) return std::nullopt;
  try {
    return storage::parse_score(storage::read_text_file(dump.score(), kMaxScoreBytes));
  } catch (const FileError&) {
    return std::nullopt;
  }
}

// How many samples the run itself was evaluated on; 0: it does not say, as that of a server, and
// `data`, opened with the settings `config`, are not its own either.
std::int64_t usual_samples_of(const std::filesystem::path& run, const config::RunConfig& config,
                              const data::Dataset& data) {
  const nlohmann::json document = engine::read_run_json(run);
  const nlohmann::json said = document.value("data", nlohmann::json());
  for (const char* name : {"test_samples", "test_words"}) {
    if (!said.is_object() || !said.contains(name)) continue;
    if (said[name].is_number_integer()) return said[name].get<std::int64_t>();
  }
  return config.test_size == engine::read_run_config(run).test_size ? data.size() : 0;
}

// "  on 320 samples": of scores that are not on the whole set.
std::string samples_text(const std::set<std::int64_t>& samples, bool full) {
  if (samples.empty()) return "";
  std::vector<std::string> parts;
  for (const std::int64_t count : samples) parts.push_back(std::to_string(count));
  return "  on " + join(parts, ", ") + (full ? " or all" : "") + " samples";
}

int default_jobs(const config::RunConfig& config) {
  if (config.device != "cpu") return 1;
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

}  // namespace

DumpScoringReport score_dumps(const std::filesystem::path& run, const config::RunConfig& config,
                              const data::Dataset& data, const DumpScoringRequest& request) {
  DumpScoringReport report;
  const storage::FoundDumps found = storage::find_dumps(run);
  name_foreign(found.foreign);
  report.foreign = static_cast<std::int64_t>(found.foreign.size());
  report.found = static_cast<std::int64_t>(found.dumps.size());
  const std::int64_t usual = usual_samples_of(run, config, data);
  const std::int64_t asked =
      request.most_samples > 0 ? std::min(request.most_samples, data.size()) : data.size();
  std::vector<storage::FoundDump> wanted;
  for (const storage::FoundDump& dump : found.dumps) {
    const std::optional<storage::DumpScore> score = sound_score(dump);
    const std::int64_t samples = !score ? 0 : score->samples == 0 ? usual : score->samples;
    const bool fewer = score && samples > 0 && samples < asked;
    if (dump.has_model && (!score || fewer || request.again)) {
      wanted.push_back(dump);
    } else if (score) {
      ++report.had_score;
      report.partial += fewer ? 1 : 0;
    }
  }
  if (report.partial > 0) {
    fmt::print(stderr,
               "{}: {} scores are of fewer than the {} samples asked for, and their models are "
               "deleted\n",
               run.string(), report.partial, asked);
  }
  if (wanted.empty()) return report;
  ScoringProgress progress(run.string(), static_cast<std::int64_t>(wanted.size()));
  engine::DumpEvaluationOptions options;
  options.jobs = request.jobs > 0 ? request.jobs : default_jobs(config);
  options.most_samples = request.most_samples;
  options.usual_samples = usual;
  options.delete_models = request.delete_models;
  options.stop = &stop_requested();
  options.scored = [&](const storage::FoundDump& dump, const storage::DumpScore& score,
                       std::int64_t left) {
    if (request.scored) {
      progress.clear();
      request.scored(dump, score);
    }
    if (request.progress) progress.show(left);
  };
  options.skipped = [&](const std::string& why) {
    progress.clear();
    fmt::print(stderr, "skipped: {}\n", why);
  };
  watch_signals();
  report.evaluation = engine::evaluate_dumps(config, data, wanted, options);
  progress.clear();
  return report;
}

void delete_scored_models(const std::filesystem::path& run) {
  for (const storage::FoundDump& dump : storage::find_dumps(run).dumps) {
    if (dump.has_model && sound_score(dump)) storage::remove_tree(dump.model());
  }
}

void print_scores(std::FILE* out, const std::filesystem::path& run) {
  struct Best {
    std::int64_t scores = 0;
    storage::DumpScore lowest;
    storage::DumpScore last;
    std::set<std::int64_t> samples;  // of scores on other than all
    bool full = false;               // some are on all
  };
  std::map<std::pair<bool, Rank>, Best> by_owner;
  for (const storage::FoundDump& dump : storage::find_dumps(run).dumps) {
    if (!dump.has_score) continue;
    const auto score = storage::parse_score(storage::read_text_file(dump.score(), kMaxScoreBytes));
    if (!score) {
      fmt::print(stderr, "skipped: {} holds no score\n", dump.score().string());
      continue;
    }
    Best& best = by_owner[{dump.name.of_server, dump.name.worker}];
    if (score->samples > 0) best.samples.insert(score->samples);
    best.full = best.full || score->samples == 0;
    if (best.scores++ == 0 || score->loss < best.lowest.loss) best.lowest = *score;
    best.last = *score;
  }
  for (const auto& [owner, best] : by_owner) {
    fmt::print(out,
               "{:<10} {:>5} models  lowest loss {:.4f} ({:.2f}%) at {:.1f} s  last {:.4f} "
               "({:.2f}%) at {:.1f} s{}\n",
               owner.first ? "server" : fmt::format("worker {}", owner.second), best.scores,
               best.lowest.loss, 100 * best.lowest.accuracy, best.lowest.seconds, best.last.loss,
               100 * best.last.accuracy, best.last.seconds, samples_text(best.samples, best.full));
  }
}

}  // namespace cohort::apps
