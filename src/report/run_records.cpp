#include "report/run_records.h"

#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <optional>
#include <set>
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

[[noreturn]] void refuse(const fs::path& folder) {
  std::error_code error;
  const std::string name = folder.string();
  if (!fs::exists(folder, error)) throw ConfigError("there is no run directory " + name);
  if (!fs::is_directory(folder, error)) {
    throw ConfigError(name + " is not a run directory but a file; give the folder that holds it");
  }
  std::vector<std::string> runs;
  for (const fs::path& run : runs_in(folder)) runs.push_back(run.string());
  if (runs.empty()) {
    throw ConfigError(name +
                      " is not a run directory: it has no run.json; give a folder that "
                      "`cohort train` wrote, such as runs/NAME");
  }
  constexpr std::size_t kMostNamed = 6;
  const bool more = runs.size() > kMostNamed;
  runs.resize(std::min(runs.size(), kMostNamed));
  throw ConfigError(name + " is not a run directory but holds some; give those instead: " +
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
    if (evaluation->split == run.evaluated_on()) {
      run.evaluations.push_back(std::move(*evaluation));
    }
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

void read_summary(RunRecords& run, const fs::path& path) {
  try {
    const nlohmann::json json = parse_json(read_text_file(path, kMostRunJson), kJsonDepth);
    if (json.is_object()) run.summary = json;
  } catch (const FileError& error) {
    run.notes.push_back(path.string() + " was skipped: " + error.what());
  }
}

// What run.json says, or when it was written: as training begins.
std::string begin_of(const RunRecords& run, const fs::path& description) {
  const auto said = run.description.find("started_at");
  if (said != run.description.end() && said->is_string()) return said->get<std::string>();
  struct ::stat status {};
  struct ::tm parts {};
  if (::stat(description.c_str(), &status) != 0) return "";
  if (::gmtime_r(&status.st_mtime, &parts) == nullptr) return "";
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &parts)};
}

}  // namespace

std::string RunRecords::setting(const std::string& name) const {
  const auto found = config.find(name);
  if (found == config.end()) return "";
  if (found->is_string()) return found->get<std::string>();
  std::string text = found->dump();
  if (found->is_number_float() && text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

std::string RunRecords::evaluated_on() const {
  const std::string split = setting("eval-split");
  return split.empty() ? "test" : split;
}

std::string evaluated_on(const std::vector<RunRecords>& runs) {
  std::set<std::string> splits;
  for (const RunRecords& run : runs) splits.insert(run.evaluated_on());
  return join(std::vector<std::string>(splits.begin(), splits.end()), " or ");
}

std::optional<double> RunRecords::steps_per_epoch() const {
  const auto found = description.find("steps_per_epoch");
  if (found != description.end() && found->is_number() && found->get<double>() > 0) {
    return found->get<double>();
  }
  if (steps.empty() || !(steps.back().epoch > 0)) return std::nullopt;
  return static_cast<double>(steps.back().step) / steps.back().epoch;
}

bool natural_less(std::string_view a, std::string_view b) {
  const std::string_view whole_a = a;
  const std::string_view whole_b = b;
  const auto digits_of = [](std::string_view text) {
    return text.substr(0, std::min(text.find_first_not_of("0123456789"), text.size()));
  };
  const auto significant = [](std::string_view digits) {
    return digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
  };
  const auto begins_fraction = [&](std::string_view text) {
    return text[0] == '.' && !digits_of(text.substr(1)).empty();
  };
  bool after_digits = false;  // then a '.' begins a fraction, whose digits are read one by one
  bool in_fraction = false;
  while (!a.empty() && !b.empty()) {
    std::string_view x = digits_of(a);
    std::string_view y = digits_of(b);
    if (x.empty() || y.empty()) {
      if (after_digits && begins_fraction(a) != begins_fraction(b)) return begins_fraction(b);
      if (a[0] != b[0]) return a[0] < b[0];
      in_fraction = after_digits && a[0] == '.';
      after_digits = false;
      a.remove_prefix(1);
      b.remove_prefix(1);
      continue;
    }
    a.remove_prefix(x.size());
    b.remove_prefix(y.size());
    after_digits = true;
    if (!in_fraction) {
      x = significant(x);
      y = significant(y);
      if (x.size() != y.size()) return x.size() < y.size();
    }
    in_fraction = false;
    if (x != y) return x < y;
  }
  if (a.size() != b.size()) return a.size() < b.size();
  return whole_a < whole_b;  // 01 and 1
}

std::vector<fs::path> runs_in(const fs::path& folder) {
  std::vector<fs::path> runs;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (is_run(entry->path())) runs.push_back(entry->path());
  }
  std::sort(runs.begin(), runs.end(), [](const fs::path& a, const fs::path& b) {
    return natural_less(a.string(), b.string());
  });
  return runs;
}

std::vector<fs::path> expanded_runs(const std::vector<std::string>& folders) {
  std::vector<fs::path> result;
  for (const std::string& folder : folders) {
    const std::vector<fs::path> inside = is_run(folder) ? std::vector<fs::path>{} : runs_in(folder);
    if (inside.empty()) result.emplace_back(folder);
    result.insert(result.end(), inside.begin(), inside.end());
  }
  return result;
}

RunRecords read_run(const fs::path& folder) {
  if (!is_run(folder)) refuse(folder);
  RunRecords run;
  run.folder = folder;
  const fs::path description = folder / "run.json";
  try {
    const nlohmann::json json = parse_json(read_text_file(description, kMostRunJson), kJsonDepth);
    if (json.is_object()) run.description = json;
    if (json.is_object() && json.contains("config") && json["config"].is_object()) {
      run.config = json["config"];
    }
  } catch (const FileError& error) {
    throw FileError(description.string() + ": " + error.what());
  }
  run.begun = begin_of(run, description);
  std::error_code error;
  if (fs::exists(folder / "metrics.jsonl", error)) read_metrics(run, folder / "metrics.jsonl");
  if (fs::exists(folder / "summary.json", error)) read_summary(run, folder / "summary.json");
  run.dumps = read_dump_scores(folder);
  run.notes.insert(run.notes.end(), run.dumps.notes.begin(), run.dumps.notes.end());
  return run;
}

}  // namespace cohort
