#include "report/run_records.h"

#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>

#include "core/error.h"
#include "core/text.h"
#include "metrics/json_lines_sink.h"
#include "report/json_fields.h"
#include "storage/file.h"
#include "storage/json.h"
#include "storage/worker_folder.h"

namespace cohort::report {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxRunJson = 16 << 20;
constexpr std::uint64_t kMaxMetrics = std::uint64_t{2} << 30;
constexpr int kJsonDepth = 32;
constexpr std::int64_t kMaxProcesses = 1 << 16;

bool is_run(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / "run.json", error);
}

// The same however a folder is named.
fs::path place_of(const fs::path& folder) {
  const fs::path place = fs::absolute(folder).lexically_normal();
  return place.has_filename() ? place : place.parent_path();
}

[[noreturn]] void refuse(const fs::path& folder) {
  std::error_code error;
  const std::string name = folder.string();
  if (!fs::exists(folder, error)) throw ConfigError("there is no run directory " + name);
  if (!fs::is_directory(folder, error)) {
    throw ConfigError(name + " is not a run directory but a file; give the folder that holds it");
  }
  std::vector<std::string> runs;
  for (const fs::path& run : jobs_among(runs_in(folder))) runs.push_back(run.string());
  if (runs.empty()) {
    throw ConfigError(name +
                      " is not a run directory: it has no run.json; give a folder that "
                      "`cohort train` wrote, such as runs/NAME");
  }
  constexpr std::size_t kMaxNamed = 6;
  const bool more = runs.size() > kMaxNamed;
  runs.resize(std::min(runs.size(), kMaxNamed));
  throw ConfigError(name + " is not a run directory but holds some; give those instead: " +
                    join(runs, " ") + (more ? " ..." : ""));
}

// Whether a line that is no record known here was written whole: a record of a kind to come.
bool is_foreign_record(std::string_view line) {
  try {
    const nlohmann::json object = storage::parse_json(line, kJsonDepth);
    if (!object.is_object() || !object.contains("type") || !object["type"].is_string()) {
      return false;
    }
    const std::string type = object["type"];
    return type != "step" && type != "evaluation" && type != "event" && type != "traffic";
  } catch (const FileError&) {
    return false;
  }
}

void keep(RunRecords& run, metrics::AnyRecord record) {
  if (auto* step = std::get_if<metrics::StepRecord>(&record)) {
    run.steps.push_back(*step);
  } else if (auto* traffic = std::get_if<metrics::TrafficRecord>(&record)) {
    run.traffic.push_back(std::move(*traffic));
  } else if (auto* evaluation = std::get_if<metrics::EvaluationRecord>(&record)) {
    if (evaluation->split == run.evaluated_on()) {
      run.evaluations.push_back(std::move(*evaluation));
    }
  }
}

void read_metrics(RunRecords& run, const fs::path& path) {
  const std::string text = storage::read_text_file(path, kMaxMetrics);
  std::size_t number = 0;
  std::vector<std::size_t> damaged;  // numbers of lines, from 1
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const auto line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (std::optional<metrics::AnyRecord> record = metrics::parse_record(line)) {
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
    const nlohmann::json json =
        storage::parse_json(storage::read_text_file(path, kMaxRunJson), kJsonDepth);
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

nlohmann::json read_description(const fs::path& folder) {
  const fs::path path = folder / "run.json";
  try {
    nlohmann::json json =
        storage::parse_json(storage::read_text_file(path, kMaxRunJson), kJsonDepth);
    return json.is_object() ? json : nlohmann::json::object();
  } catch (const FileError& error) {
    throw FileError(path.string() + ": " + error.what());
  }
}

nlohmann::json config_in(const nlohmann::json& description) {
  const auto found = description.find("config");
  return found != description.end() && found->is_object() ? *found : nlohmann::json::object();
}

// One process's folder.
RunRecords read_process(const fs::path& folder) {
  if (!is_run(folder)) refuse(folder);
  RunRecords run;
  run.folder = folder;
  run.description = read_description(folder);
  run.config = config_in(run.description);
  run.begun = begin_of(run, folder / "run.json");
  std::error_code error;
  if (fs::exists(folder / "metrics.jsonl", error)) read_metrics(run, folder / "metrics.jsonl");
  if (fs::exists(folder / "summary.json", error)) read_summary(run, folder / "summary.json");
  run.dumps = read_dump_scores(folder);
  run.notes.insert(run.notes.end(), run.dumps.notes.begin(), run.dumps.notes.end());
  return run;
}

void add_process(RunRecords& run, RunRecords other) {
  run.steps.insert(run.steps.end(), other.steps.begin(), other.steps.end());
  // A server's evaluations, by which it chooses, have no rank.
  std::copy_if(other.evaluations.begin(), other.evaluations.end(),
               std::back_inserter(run.evaluations),
               [](const metrics::EvaluationRecord& record) { return record.rank >= 0; });
  run.traffic.insert(run.traffic.end(), other.traffic.begin(), other.traffic.end());
  run.dumps.unscored += other.dumps.unscored;
  if (const std::int64_t theirs = other.dumps.fewest_samples; theirs > 0) {
    std::int64_t& fewest = run.dumps.fewest_samples;
    fewest = fewest == 0 ? theirs : std::min(fewest, theirs);
  }
  for (auto& [rank, dumps] : other.dumps.workers) run.dumps.workers[rank] = std::move(dumps);
  if (!other.dumps.server.empty()) run.dumps.server = std::move(other.dumps.server);
  run.notes.insert(run.notes.end(), other.notes.begin(), other.notes.end());
}

template <class Record>
void sort_by_time(std::vector<Record>& records) {
  std::stable_sort(records.begin(), records.end(), [](const Record& a, const Record& b) {
    return a.time_seconds < b.time_seconds;
  });
}

// What is the same in the folders of all processes of a job; the rest may differ, or be known to
// some only.
nlohmann::json identity_of(const nlohmann::json& description) {
  const nlohmann::json config = config_in(description);
  nlohmann::json identity = {{"job", description.value("job", nlohmann::json())}};
  if (identity["job"].is_null()) identity["job"] = "";
  for (const char* name : {"model", "data", "method", "workers", "seed", "job"}) {
    identity["config"].push_back(config.value(name, nlohmann::json()));
  }
  return identity;
}

Rank rank_in(const nlohmann::json& description) {
  const nlohmann::json rank = config_in(description).value("rank", nlohmann::json());
  return rank.is_number_integer() ? rank.get<Rank>() : -1;
}

// Of a folder that may be another job's: a damaged one is none of ours.
nlohmann::json description_beside(const fs::path& folder) {
  try {
    return is_run(folder) ? read_description(folder) : nlohmann::json::object();
  } catch (const FileError&) {
    return nlohmann::json::object();
  }
}

bool is_of_server(const nlohmann::json& description) {
  const nlohmann::json& command = field_at(description, {"command"});
  return command.is_array() &&
         std::find(command.begin(), command.end(), "serve-best") != command.end();
}

// The server's folder of the job whose first worker's is `first`, if it is there.
std::optional<fs::path> server_beside(const fs::path& first, const nlohmann::json& description) {
  const nlohmann::json identity = identity_of(description);
  const auto fits = [&](const fs::path& folder) {
    const nlohmann::json theirs = description_beside(folder);
    return is_of_server(theirs) && identity_of(theirs) == identity;
  };
  if (const fs::path named = storage::server_folder(first); fits(named)) return named;
  // Without a name it has one of its own, and only the job says whose it is.
  // NOLINTNEXTLINE(readability-container-size-empty): JSON is never empty() when it is text
  if (identity["job"] == "") return std::nullopt;
  const fs::path place = place_of(first);
  std::error_code error;
  for (fs::directory_iterator entry(place.parent_path(), error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(storage::kUnnamedServer) && fits(entry->path())) {
      return first.lexically_normal().parent_path() / name;
    }
  }
  return std::nullopt;
}

// Whole numbers without decimals; "" when there is no such setting.
std::string text_of(const nlohmann::json& settings, const std::string& name) {
  const auto found = settings.find(name);
  if (found == settings.end()) return "";
  if (found->is_string()) return found->get<std::string>();
  std::string text = found->dump();
  if (found->is_number_float() && text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

}  // namespace

std::string RunRecords::setting(const std::string& name) const { return text_of(config, name); }

std::string RunRecords::asked_setting(const std::string& name) const {
  const nlohmann::json& asked = field_at(description, {"asked"});
  if (asked.is_object()) return text_of(asked.contains(name) ? asked : config, name);
  // Runs that do not say what was asked for tell their commands.
  if (name != "consensus-stepsize" || !config.contains(name)) return setting(name);
  const std::string command = field_at(description, {"command"}).dump();
  const bool given = command.find("consensus-stepsize") != std::string::npos ||
                     command.find("consensus_stepsize") != std::string::npos;
  return given || !description.contains("command") ? setting(name) : "auto";
}

metrics::RunTotals RunRecords::totals() const {
  metrics::RunTotals totals;
  for (const metrics::StepRecord& record : steps) totals.add(record);
  for (const metrics::TrafficRecord& record : traffic) totals.add(record);
  return totals;
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
    // One that is being made has a hidden name.
    const bool hidden = entry->path().filename().string().starts_with('.');
    if (!hidden && is_run(entry->path())) runs.push_back(entry->path());
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
  return jobs_among(result);
}

std::vector<fs::path> processes_of(const fs::path& folder) {
  std::vector<fs::path> result = {folder};
  const nlohmann::json description = read_description(folder);
  const nlohmann::json workers = config_in(description).value("workers", nlohmann::json());
  if (!workers.is_number_integer() || rank_in(description) != 0) return result;
  const nlohmann::json identity = identity_of(description);
  const auto last = std::min(workers.get<std::int64_t>(), kMaxProcesses);
  for (Rank rank = 1; rank < last; ++rank) {
    const fs::path other = storage::worker_folder(folder, rank);
    if (!is_run(other)) continue;
    const nlohmann::json theirs = read_description(other);
    if (rank_in(theirs) == rank && identity_of(theirs) == identity) result.push_back(other);
  }
  if (const auto server = server_beside(folder, description)) result.push_back(*server);
  return result;
}

namespace {

// The first worker's folder where `folder` is that of another process of its job.
fs::path first_of_job(const fs::path& folder) {
  const std::optional<storage::WorkerFolder> worker = storage::parse_worker_folder(folder);
  const fs::path first =
      worker ? worker->run : storage::parse_server_folder(folder).value_or(fs::path());
  if (first.empty() || rank_in(description_beside(first)) != 0) return {};
  const std::vector<fs::path> all = processes_of(first);
  const bool part = std::any_of(all.begin() + 1, all.end(), [&](const fs::path& each) {
    return place_of(each) == place_of(folder);
  });
  return part ? first : fs::path();
}

}  // namespace

std::vector<fs::path> jobs_among(const std::vector<fs::path>& folders) {
  std::set<fs::path> others;
  for (const fs::path& folder : folders) {
    if (!is_run(folder)) continue;
    const std::vector<fs::path> processes = processes_of(folder);
    for (std::size_t i = 1; i < processes.size(); ++i) others.insert(place_of(processes[i]));
  }
  std::vector<fs::path> result;
  std::copy_if(folders.begin(), folders.end(), std::back_inserter(result),
               [&](const fs::path& folder) { return !others.contains(place_of(folder)); });
  return result;
}

RunRecords read_run(const fs::path& folder) {
  RunRecords run = read_process(folder);
  const std::vector<fs::path> processes = processes_of(folder);
  if (processes.size() == 1) {
    run.part_of = first_of_job(folder);
    if (run.part_of.empty()) return run;
    run.notes.push_back(folder.string() + " is one process's part of the job " +
                        run.part_of.string() + ", and what is said of it is of that part alone: " +
                        "name " + run.part_of.string() + " for the whole job");
    return run;
  }
  for (std::size_t i = 1; i < processes.size(); ++i) add_process(run, read_process(processes[i]));
  sort_by_time(run.steps);
  sort_by_time(run.evaluations);
  sort_by_time(run.traffic);
  return run;
}

}  // namespace cohort::report
