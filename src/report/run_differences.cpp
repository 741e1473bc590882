#include "report/run_differences.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

namespace cohort::report {
namespace {

constexpr std::string_view kFirst[] = {
    "method",      "workers", "swamp-server", "pull-probability", "crossover-probability",
    "server-mode", "model",   "data",         "optimizer",        "lr",
    "batch",       "epochs"};
constexpr std::string_view kNotOfTraining[] = {"name",        "runs-dir",      "data-dir",
                                               "job",         "job-name",      "job-root-dir",
                                               "meet",        "world",         "rank",
                                               "token-file",  "tls-dir",       "insecure",
                                               "keep",        "keep-dumps",    "record-every",
                                               "listen",      "peer-timeout",  "eval-batch",
                                               "dump-every",  "eval-every",    "checkpoint-every",
                                               "dump-folder", "loader-threads"};

// As it is shown: of servers that have addresses how many they are.
std::string shown_setting(const RunRecords& run, const std::string& name) {
  std::string text = run.asked_setting(name);
  if (name != "servers" || text.find(':') == std::string::npos) return text;
  return std::to_string(1 + std::count(text.begin(), text.end(), ','));
}

// Whether the setting did something in the run, as its run.json says.
bool matters(const RunRecords& run, const std::string& setting) {
  const auto unused = run.description.find("unused");
  return unused == run.description.end() || !unused->is_array() ||
         std::find(unused->begin(), unused->end(), setting) == unused->end();
}

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
      if (run.config.contains(name)) values.insert(shown_setting(run, name));
      difference.values.push_back(matters(run, name) ? shown_setting(run, name) : "");
    }
    const bool anybody = std::any_of(difference.values.begin(), difference.values.end(),
                                     [](const std::string& value) { return !value.empty(); });
    if (values.size() > 1 && anybody) differences.push_back(std::move(difference));
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

}  // namespace cohort::report
