#include "report/dump_scores.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "core/error.h"
#include "core/text.h"
#include "storage/file.h"

namespace cohort::report {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxScore = 4096;  // bytes; a score is one short line

std::optional<storage::DumpScore> read_score(const fs::path& path) {
  try {
    return storage::parse_score(storage::read_text_file(path, kMaxScore));
  } catch (const FileError&) {  // gone since it was listed, too long, or not ours to read
    return std::nullopt;
  }
}

std::string skipped(const fs::path& run, const std::vector<fs::path>& paths, const char* what) {
  constexpr std::size_t kMaxNamed = 3;
  std::vector<std::string> names;
  for (const fs::path& path : paths) {
    if (names.size() < kMaxNamed) names.push_back(path.lexically_relative(run).string());
  }
  return run.string() + ": skipped " + std::to_string(paths.size()) + what +
         (paths.size() == 1 ? "" : "s") + " among the dumped models: " + join(names, ", ") +
         (paths.size() > kMaxNamed ? ", ..." : "");
}

// What can be done about scores that are not of all samples.
std::string again_text(std::size_t partial, std::size_t kept) {
  if (kept == partial) return "`cohort eval` evaluates those models again";
  if (kept == 0) return "those models were deleted since, and cannot be evaluated again";
  return "`cohort eval` evaluates the " + std::to_string(kept) +
         " of those models again that were not deleted since";
}

void sort_by_time(std::vector<ScoredDump>& dumps) {
  std::stable_sort(dumps.begin(), dumps.end(), [](const ScoredDump& a, const ScoredDump& b) {
    return std::tie(a.score.seconds, a.name.version) < std::tie(b.score.seconds, b.name.version);
  });
}

}  // namespace

double DumpScores::last_seconds() const {
  double last = server.empty() ? 0 : server.back().score.seconds;
  for (const auto& [rank, dumps] : workers) last = std::max(last, dumps.back().score.seconds);
  return last;
}

DumpScores read_dump_scores(const fs::path& run) {
  DumpScores scores;
  const storage::FoundDumps found = storage::find_dumps(run);
  std::vector<fs::path> damaged;
  std::size_t partial = 0;
  std::size_t kept = 0;  // of these, how many models are still there
  for (const storage::FoundDump& dump : found.dumps) {
    if (!dump.has_score) {
      ++scores.unscored;
      continue;
    }
    const std::optional<storage::DumpScore> score = read_score(dump.score());
    if (!score) {
      damaged.push_back(dump.score());
      continue;
    }
    if (score->samples > 0) {
      scores.fewest_samples = scores.fewest_samples == 0
                                  ? score->samples
                                  : std::min(scores.fewest_samples, score->samples);
      ++partial;
      if (dump.has_model) ++kept;
    }
    if (dump.name.of_server) {
      scores.server.push_back({dump.name, *score});
    } else {
      scores.workers[dump.name.worker].push_back({dump.name, *score});
    }
  }
  sort_by_time(scores.server);
  for (auto& [rank, dumps] : scores.workers) sort_by_time(dumps);
  if (!found.foreign.empty()) {
    scores.notes.push_back(skipped(run, found.foreign, " foreign file"));
  }
  if (!damaged.empty()) scores.notes.push_back(skipped(run, damaged, " damaged score"));
  if (partial > 0) {
    scores.notes.push_back(run.string() + ": " + std::to_string(partial) +
                           " scores of dumped models are not of the whole set, but of as few as " +
                           std::to_string(scores.fewest_samples) + " samples; " +
                           again_text(partial, kept));
  }
  if (scores.unscored > 0) {
    scores.notes.push_back(run.string() + ": " + std::to_string(scores.unscored) +
                           " dumped models have no score yet; `cohort eval` gives them one");
  }
  return scores;
}

}  // namespace cohort::report
