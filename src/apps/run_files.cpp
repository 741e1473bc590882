#include "apps/run_files.h"

#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "data/text_sets.h"
#include "engine/assemble.h"

namespace cohort {
namespace {

namespace fs = std::filesystem;

// Where the sample order of a run that goes on begins: as before when nothing about it changed, so
// that the run is the very same; otherwise in the middle of the epoch.
OrderStart order_start(const nlohmann::json& engine, const RunConfig& config) {
  const auto start_from = [](const nlohmann::json& numbers) {
    return OrderStart{numbers.at(0), numbers.at(1), numbers.at(2)};
  };
  const nlohmann::json order = engine.value("order", nlohmann::json());
  if (order.is_null()) return {};
  const std::int64_t batch = order.at("batch_of_all");
  if (batch == batch_of_all(config, static_cast<int>(config.workers))) {
    return start_from(order.at("started_at"));
  }
  if (config.partition != "none") {
    throw ConfigError("a run with --partition goes on with the same --workers and --batch only");
  }
  if (is_text_set(config.data)) {
    throw ConfigError(fmt::format(
        "the run has cut its text into {} columns, one for each row of the batches of all workers, "
        "and goes on with as many: --batch times --workers must stay {}, but would be {}",
        batch, batch, batch_of_all(config, static_cast<int>(config.workers))));
  }
  return start_from(order.at("stands_at"));
}

nlohmann::json to_json(const ResumePoint& point) {
  return {{"start", {point.start.step, point.start.epoch, point.start.position}},
          {"step", point.step},
          {"engine", point.engine},
          {"source", point.source}};
}

}  // namespace

std::optional<ResumePoint> resume_point_from(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const nlohmann::json document = nlohmann::json::parse(text);
  const nlohmann::json& start = document.at("start");
  return ResumePoint{{start.at(0), start.at(1), start.at(2)},
                     document.at("step"),
                     document.at("engine"),
                     document.at("source")};
}

RunFiles open_run(const RunConfig& config, const TrainRequest& request) {
  if (request.resume.empty()) {
    if (request.make_room) request.make_room();
    RunDirectory run =
        RunDirectory::create(request.runs_dir, request.name, config.model + "-" + config.data);
    CheckpointStore checkpoints(run.checkpoints(), static_cast<int>(config.keep));
    return {std::move(run), std::move(checkpoints), {}, {}};
  }
  RunDirectory run = RunDirectory::open(request.resume);
  CheckpointStore checkpoints(run.checkpoints(), static_cast<int>(config.keep));
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
std::optional<RunDirectory> open_or_make(const fs::path& place, const nlohmann::json& document) {
  try {
    if (!fs::exists(place / "run.json")) {
      RunDirectory made = RunDirectory::create(place.parent_path(), place.filename().string(), "");
      made.write_run_json(document);
      return made;
    }
    const std::string id = document.at("id");
    if (read_run_json(place).value("id", "") != id) return std::nullopt;
    RunDirectory run = RunDirectory::open(place);
    run.mend_metrics();
    return run;
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

RunDirectory find_place(const fs::path& path, const std::string& who,
                        const nlohmann::json& document) {
  constexpr int kMostPlaces = 100;
  for (int number = 0; number < kMostPlaces; ++number) {
    const std::string suffix = number > 1 ? "-" + std::to_string(number) : "";
    const fs::path place = number == 0 ? path : fs::path(path.string() + "-" + who + suffix);
    if (auto run = open_or_make(place, document)) return std::move(*run);
  }
  throw FileError(path.string() + " and all folders like it are other runs");
}

}  // namespace

RunFiles take_over_run(const fs::path& path, const std::string& who, const RunConfig& config,
                       const nlohmann::json& document) {
  const auto keep = [&](RunDirectory run) -> RunFiles {
    CheckpointStore checkpoints(run.checkpoints(), static_cast<int>(config.keep));
    return {std::move(run), std::move(checkpoints), {}, {}};
  };
  try {
    return keep(find_place(path, who, document));
  } catch (const FileError&) {
    return keep(find_place(fs::temp_directory_path() / path.filename(), who, document));
  }
}

std::string resume_text(const RunFiles& files, const RunConfig& config) {
  if (!files.checkpoint) return "";
  const LoadedCheckpoint& checkpoint = *files.checkpoint;
  const nlohmann::json engine = checkpoint.extra.value("engine", nlohmann::json::object());
  try {
    return to_json({order_start(engine, config), checkpoint.step, engine.dump(),
                    checkpoint.folder.string()})
        .dump();
  } catch (const nlohmann::json::exception& error) {
    throw FileError(checkpoint.folder.string() + ": its manifest is damaged: " + error.what());
  }
}

}  // namespace cohort
