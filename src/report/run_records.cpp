#include "report/run_records.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <system_error>

#include "core/error.h"
#include "core/text.h"
#include "metrics/json_lines_sink.h"
#include "storage/file.h"
#include "storage/json.h"

namespace cohort {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostRunJson = 16 << 20;
constexpr std::uint64_t kMostMetrics = std::uint64_t{2} << 30;
constexpr int kJsonDepth = 32;

bool is_run(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / "run.json", error);
}

// The runs in a folder of runs, for people who name that folder.
std::vector<std::string> runs_in(const fs::path& folder) {
  std::vector<std::string> runs;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (is_run(entry->path())) runs.push_back(entry->path().string());
  }
  std::sort(runs.begin(), runs.end());
  return runs;
}

[[noreturn]] void refuse(const fs::path& folder) {
  std::error_code error;
  const std::string name = folder.string();
  if (!fs::exists(folder, error)) throw ConfigError("there is no run directory " + name);
  if (!fs::is_directory(folder, error)) {
    throw ConfigError(name + " is not a run directory but a file; give the folder that holds it");
  }
  std::vector<std::string> runs = runs_in(folder);
  if (runs.empty()) {
    throw ConfigError(name +
                      " is not a run directory: it has no run.json; give a folder that "
                      "`cohort train` wrote, such as runs/NAME");
  }
  constexpr std::size_t kMostNamed = 6;
  const bool more = runs.size() > kMostNamed;
  runs.resize(std::min(runs.size(), kMostNamed));
  throw ConfigError(name + " is not a run directory but holds some; give those to plot: " +
                    join(runs, " ") + (more ? " ..." : ""));
}

// Whether a line that is no record known here was written whole: a record of a kind to come.
bool is_foreign_record(std::string_view line) {
  try {
    const nlohmann::json object = parse_json(line, kJsonDepth);
    if (!object.is_object() || !object.contains("type") || !object["type"].is_string()) {
      return false;
    }
    const std::string type = object["type"];
    return type != "step" && type != "evaluation" && type != "event";
  } catch (const FileError&) {
    return false;
  }
}

void keep(RunRecords& run, AnyRecord record) {
  if (auto* step = std::get_if<StepRecord>(&record)) {
    run.steps.push_back(*step);
  } else if (auto* evaluation = std::get_if<EvaluationRecord>(&record)) {
    if (evaluation->split == "test") run.evaluations.push_back(std::move(*evaluation));
  }
}

void read_metrics(RunRecords& run, const fs::path& path) {
  const std::string text = read_text_file(path, kMostMetrics);
  std::size_t number = 0;
  std::vector<std::size_t> damaged;  // numbers of lines, from 1
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const auto line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (std::optional<AnyRecord> record = parse_record(line)) {
      keep(run, std::move(*record));
    } else if (!is_foreign_record(line)) {
      damaged.push_back(number);
    }
  }
  if (damaged.empty()) return;
  if (damaged == std::vector{number}) {
    run.notes.push_back(path.string() + ": the last line is incomplete and was skipped; the run " +
                        "was killed or is writing it now");
    return;
  }
  run.notes.push_back(path.string() + ": skipped " + std::to_string(damaged.size()) +
                      (damaged.size() == 1 ? " damaged line" : " damaged lines, the first") +
                      " at line " + std::to_string(damaged.front()));
}

}  // namespace

std::string RunRecords::setting(const std::string& name) const {
  const auto found = config.find(name);
  if (found == config.end()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

RunRecords read_run(const fs::path& folder) {
  if (!is_run(folder)) refuse(folder);
  RunRecords run;
  run.folder = folder;
  const fs::path description = folder / "run.json";
  try {
    const nlohmann::json json = parse_json(read_text_file(description, kMostRunJson), kJsonDepth);
    if (json.is_object() && json.contains("config") && json["config"].is_object()) {
      run.config = json["config"];
    }
  } catch (const FileError& error) {
    throw FileError(description.string() + ": " + error.what());
  }
  std::error_code error;
  if (fs::exists(folder / "metrics.jsonl", error)) read_metrics(run, folder / "metrics.jsonl");
  return run;
}

}  // namespace cohort
