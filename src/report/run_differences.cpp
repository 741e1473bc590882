#include "report/run_differences.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace cohort {
namespace {

constexpr std::string_view kFirst[] = {
    "method",      "workers", "swamp-server", "pull-probability", "crossover-probability",
    "server-mode", "model",   "data",         "optimizer",        "lr",
    "batch",       "epochs"};
constexpr std::string_view kNotOfTraining[] = {
    "name",       "runs-dir",    "data-dir",      "job",          "job-name", "job-root-dir",
    "meet",       "world",       "rank",          "token-file",   "tls-dir",  "insecure",
    "init",       "keep",        "keep-dumps",    "record-every", "listen",   "peer-timeout",
    "eval-batch", "dump-every",  "eval-every",    "threads",      "engine",   "checkpoint-every",
    "servers",    "dump-folder", "loader-threads"};

template <std::size_t count>
bool contains(const std::string_view (&table)[count], const std::string& name) {
  return std::find(std::begin(table), std::end(table), name) != std::end(table);
}

std::size_t importance(const std::string& name) {
  const std::size_t last = std::size(kFirst) + 1;
  if (name == "seed") return last;
  const auto found = std::find(std::begin(kFirst), std::end(kFirst), name);
  return static_cast<std::size_t>(found - std::begin(kFirst));
}

}  // namespace

std::vector<Difference> differing_settings(const std::vector<RunRecords>& runs) {
  std::set<std::string> names;
  for (const RunRecords& run : runs) {
    for (const auto& [name, value] : run.config.items()) {
      if (!contains(kNotOfTraining, name)) names.insert(name);
    }
  }
  std::vector<Difference> differences;
  for (const std::string& name : names) {
    Difference difference{name, {}};
    std::set<std::string> values;
    for (const RunRecords& run : runs) {
      difference.values.push_back(run.setting(name));
      if (run.config.contains(name)) values.insert(difference.values.back());
    }
    if (values.size() > 1) differences.push_back(std::move(difference));
  }
  std::stable_sort(differences.begin(), differences.end(),
                   [](const Difference& a, const Difference& b) {
                     return importance(a.name) < importance(b.name);
                   });
  return differences;
}

std::vector<Repetition> repetitions(std::size_t runs, const std::vector<Difference>& differences) {
  std::vector<Repetition> result;
  for (std::size_t run = 0; run < runs; ++run) {
    std::vector<std::string> values;
    for (const Difference& difference : differences) {
      if (difference.name != "seed") values.push_back(difference.values[run]);
    }
    const auto found = std::find_if(result.begin(), result.end(),
                                    [&](const Repetition& each) { return each.values == values; });
    if (found != result.end()) {
      found->runs.push_back(run);
    } else {
      result.push_back({{run}, std::move(values)});
    }
  }
  return result;
}

}  // namespace cohort
