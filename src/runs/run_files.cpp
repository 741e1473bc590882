#include "runs/run_files.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "data/text_sets.h"
#include "engine/assemble.h"
#include "engine/version.h"
#include "launch/job_environment.h"
#include "methods/settings.h"
#include "network/identity.h"
#include "runs/data_description.h"
#include "storage/worker_folder.h"

namespace cohort::runs {
namespace {

namespace fs = std::filesystem;

// Where the sample order of a run that goes on begins: as before when nothing about it changed, so
// that the run is the very same; otherwise in the middle of the epoch.
data::OrderStart order_start(const nlohmann::json& engine, const config::RunConfig& config) {
  const auto start_from = [](const nlohmann::json& numbers) {
    return data::OrderStart{numbers.at(0), numbers.at(1), numbers.at(2)};
  };
  const nlohmann::json order = engine.value("order", nlohmann::json());
  if (order.is_null()) return {.epoch = config.start_epoch};
  const std::int64_t batch = order.at("batch_of_all");
  if (batch == engine::batch_of_all(config, static_cast<int>(config.workers))) {
    return start_from(order.at("started_at"));
  }
  if (config.partition != "none") {
    throw ConfigError("a run with --partition goes on with the same --workers and --batch only");
  }
  if (data::is_text_set(config.data)) {
    throw ConfigError(fmt::format(
        "the run has cut its text into {} columns, one for each row of the batches of all workers, "
        "and goes on with as many: --batch times --workers must stay {}, but would be {}",
        batch, batch, engine::batch_of_all(config, static_cast<int>(config.workers))));
  }
  return start_from(order.at("stands_at"));
}

nlohmann::json to_json(const engine::ResumePoint& point) {
  return {{"start", {point.start.step, point.start.epoch, point.start.position}},
          {"step", point.step},
          {"engine", point.engine},
          {"source", point.source}};
}

// Those of `before` that have another value in `now`.
nlohmann::json different_settings(const nlohmann::json& before, const nlohmann::json& now) {
  nlohmann::json different = nlohmann::json::object();
  for (const auto& [name, value] : before.items()) {
    if (now.value(name, nlohmann::json()) != value) different[name] = value;
  }
  return different;
}

}  // namespace

void make_paths_absolute(config::RunConfig& config) {
  for (std::string* path : {&config.data_dir, &config.init}) {
    if (!path->empty()) *path = std::filesystem::absolute(*path).lexically_normal().string();
  }
}

std::optional<engine::ResumePoint> resume_point_from(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const nlohmann::json document = nlohmann::json::parse(text);
  const nlohmann::json& start = document.at("start");
  return engine::ResumePoint{{start.at(0), start.at(1), start.at(2)},
                             document.at("step"),
                             document.at("engine"),
                             document.at("source")};
}

namespace {

// Whether the run at `path` is that of the first worker of this one's job.
bool is_first_of_job(const fs::path& path, const config::RunConfig& own) {
  try {
    const config::RunConfig first = engine::read_run_config(path);
    return first.rank == 0 && first.method == own.method && first.workers == own.workers &&
           first.servers == own.servers && first.job == own.job;
  } catch (const Error&) {
    return false;
  }
}

// For a worker that is a process of its own: after the first one's run, which may be there already
// or still take that number.
std::string next_worker_name(const fs::path& runs, const std::string& stem,
                             const config::RunConfig& config) {
  for (int number = 1;; ++number) {
    const fs::path first = runs / engine::RunDirectory::numbered(stem, number);
    const fs::path own = storage::worker_folder(first, static_cast<Rank>(config.rank));
    if (fs::exists(own)) continue;
    if (!fs::exists(first) || is_first_of_job(first, config)) return own.filename().string();
  }
}

}  // namespace

fs::path own_run(const fs::path& run, std::int64_t rank) {
  const std::int64_t saved = rank < 0 ? rank : engine::read_run_config(run).rank;
  if (saved == rank || saved < 0) return run;
  const auto named = storage::parse_worker_folder(run);
  return storage::worker_folder(named && named->rank == saved ? named->run : run,
                                static_cast<Rank>(rank));
}

RunRequest own_request(RunRequest request, std::int64_t rank) {
  if (!request.name.empty()) {
    request.name = storage::worker_folder(request.name, static_cast<Rank>(rank)).string();
  }
  if (!request.resume.empty()) request.resume = own_run(request.resume, rank).string();
  return request;
}

std::string job_identity(const config::RunConfig& config) {
  return launch::is_job_named(config.job)
             ? network::to_text(network::job_id_of(launch::find_job_name(config.job)))
             : "";
}

RunFiles open_run_files(const config::RunConfig& config, const RunRequest& request,
                        const nlohmann::json& run_json) {
  if (request.resume.empty()) {
    const std::string stem = config.model + "-" + config.data;
    const std::string name = request.name.empty() && config.rank > 0
                                 ? next_worker_name(request.runs_dir, stem, config)
                                 : request.name;
    engine::RunDirectory run = engine::RunDirectory::create(request.runs_dir, name, stem, run_json);
    storage::CheckpointStore checkpoints(run.checkpoints(), static_cast<int>(config.keep));
    return {std::move(run), std::move(checkpoints), {}, {}};
  }
  engine::RunDirectory run = engine::RunDirectory::open(request.resume);
  storage::CheckpointStore checkpoints(run.checkpoints(), static_cast<int>(config.keep));
  std::vector<std::string> notes;
  auto checkpoint = checkpoints.load_latest(
      [&](const std::string& warning) { notes.push_back("warning: " + warning); });
  if (!checkpoint) {
    notes.push_back("no checkpoint yet in " + checkpoints.folder().string() +
                    ": starting from step 0");
    run.rewind_metrics(0);
  } else {
    notes.push_back(
        fmt::format("resuming from {} at step {}", checkpoint->folder.string(), checkpoint->step));
  }
  return {std::move(run), std::move(checkpoints), std::move(checkpoint), std::move(notes)};
}

namespace {

// Nothing when `place` is another run's, or is held by another process.
std::optional<engine::RunDirectory> open_or_make(const fs::path& place,
                                                 const nlohmann::json& document) {
  try {
    if (!fs::exists(place / "run.json")) {
      return engine::RunDirectory::create(place.parent_path(), place.filename().string(), "",
                                          document);
    }
    const std::string id = document.at("id");
    if (engine::read_run_json(place).value("id", "") != id) return std::nullopt;
    engine::RunDirectory run = engine::RunDirectory::open(place);
    run.repair_metrics();
    return run;
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

engine::RunDirectory find_place(const fs::path& path, const std::string& who,
                                const nlohmann::json& document) {
  constexpr int kMaxPlaces = 100;
  for (int number = 0; number < kMaxPlaces; ++number) {
    const std::string suffix = number > 1 ? "-" + std::to_string(number) : "";
    const fs::path place = number == 0 ? path : fs::path(path.string() + "-" + who + suffix);
    if (auto run = open_or_make(place, document)) return std::move(*run);
  }
  throw FileError(path.string() + " and all folders like it are other runs");
}

}  // namespace

RunFiles take_over_run(const fs::path& path, const std::string& who,
                       const config::RunConfig& config, const nlohmann::json& document) {
  const auto keep = [&](engine::RunDirectory run) -> RunFiles {
    storage::CheckpointStore checkpoints(run.checkpoints(), static_cast<int>(config.keep));
    return {std::move(run), std::move(checkpoints), {}, {}};
  };
  try {
    return keep(find_place(path, who, document));
  } catch (const FileError&) {
    return keep(find_place(fs::temp_directory_path() / path.filename(), who, document));
  }
}

std::string resume_text(const RunFiles& files, const config::RunConfig& config) {
  if (!files.checkpoint) return "";
  const storage::LoadedCheckpoint& checkpoint = *files.checkpoint;
  const nlohmann::json engine = checkpoint.extra.value("engine", nlohmann::json::object());
  try {
    return to_json({order_start(engine, config), checkpoint.step, engine.dump(),
                    checkpoint.folder.string()})
        .dump();
  } catch (const nlohmann::json::exception& error) {
    throw FileError(checkpoint.folder.string() + ": its manifest is damaged: " + error.what());
  }
}

nlohmann::json describe_host() {
  const launch::HostDescription host = launch::describe_this_host();
  return {{"name", host.name},
          {"system", host.system},
          {"cpu", host.cpu},
          {"cores", host.cores},
          {"openblas_coretype", host.openblas_coretype},
          {"cohort", engine::version()},
          {"libtorch", engine::libtorch_version()}};
}

nlohmann::json run_document(const config::RunConfig& config, const nlohmann::json& asked,
                            const models::Model& model, const data::DataSplits& data,
                            const std::vector<std::string>& arguments) {
  const engine::WorkerPlace first{0, static_cast<int>(config.workers), 0};
  return {{"id", network::to_text(network::random_job_id())},
          {"config", methods::to_json(config)},
          {"unused", methods::unused_settings(config)},
          {"job", job_identity(config)},
          {"asked", different_settings(asked, methods::to_json(config))},
          {"steps_per_epoch", engine::sample_order(config, *data.train, first).steps_per_epoch()},
          {"command", arguments},
          {"resumed_by", nlohmann::json::array()},
          {"host", describe_host()},
          {"model", {{"parameters", model.store().numel()}}},
          {"data", describe_data(config, data)}};
}

nlohmann::json resumed_document(const std::string& run, const config::RunConfig& config,
                                const data::DataSplits& data,
                                const std::vector<std::string>& arguments) {
  nlohmann::json document = engine::read_run_json(run);
  require_data_of_run(run, document, config, data);
  if (!document.contains("id")) document["id"] = network::to_text(network::random_job_id());
  document["config"] = methods::to_json(config);
  document["unused"] = methods::unused_settings(config);
  document["resumed_by"].push_back(arguments);
  document["host"] = describe_host();
  return document;
}

const std::vector<std::string>& changeable_on_resume() {
  static const std::vector<std::string> names = {
      "epochs",         "iterations",   "target-accuracy",  "eval-every",
      "eval-batch",     "record-every", "checkpoint-every", "keep",
      "dump-every",     "keep-dumps",   "dump-drop",        "loader-threads",
      "threads",        "device",       "precision",        "graph",
      "data-dir",       "workers",      "engine",           "world",
      "batch",          "accumulate",   "bucket",           "first-bucket",
      "check-replicas", "peer-timeout"};
  return names;
}

bool may_change_on_resume(const std::string& setting) {
  const auto& free = changeable_on_resume();
  return std::find(free.begin(), free.end(), setting) != free.end();
}

std::vector<ChangedSetting> forbidden_changes(const config::RunConfig& before,
                                              config::RunConfig asked) {
  make_paths_absolute(asked);
  std::vector<ChangedSetting> changed;
  for (const config::ConfigField& field : methods::config_fields()) {
    const std::string was = config::field_text(before, field);
    const std::string now = config::field_text(asked, field);
    if (was != now && !may_change_on_resume(field.name)) changed.push_back({field.name, was, now});
  }
  return changed;
}

}  // namespace cohort::runs
