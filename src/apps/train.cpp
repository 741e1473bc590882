#include <algorithm>
#include <memory>

#include "apps/command.h"
#include "apps/config_flags.h"
#include "apps/training.h"
#include "core/error.h"
#include "core/failpoint.h"
#include "core/text.h"
#include "engine/run_directory.h"
#include "launch/job_environment.h"
#include "methods/settings.h"
#include "runs/run_files.h"

namespace cohort::apps {
namespace {

struct TrainCommand {
  explicit TrainCommand(CLI::App& command) : flags(command) {
    command.add_option("--name", name, "folder of this run below --runs-dir")
        ->default_str("MODEL-DATA-001, the next free number");
    command.add_option("--runs-dir", runs_dir, "where run directories are made")
        ->capture_default_str();
    command.add_option("--resume", resume, "go on with the run in this directory")
        ->type_name("DIR");
    rejoin =
        command
            .add_option("--rejoin", rejoin_at,
                        "this process was lost, and those with whom it gossiped over tcp go "
                        "on: take part again; where the one that leads is, if not where they met")
            ->expected(0, 1)
            ->type_name("[HOST:PORT]");
    command.add_flag("--json", json, "print the summary as JSON on standard output");
    command.add_flag("--quiet", quiet, "no progress");
    command.add_option("--failpoints", failpoints, "")->group("");
  }

  ConfigFlags flags;
  std::string name;
  std::string runs_dir = "runs";
  std::string resume;
  CLI::Option* rejoin = nullptr;
  std::string rejoin_at;
  std::string failpoints;
  bool json = false;
  bool quiet = false;
};

// The folder to go on with; of a job whose workers are processes of their own, this one's.
std::string folder_to_resume(const TrainCommand& command) {
  const std::vector<std::string> given = command.flags.given();
  const bool is_worker = std::find(given.begin(), given.end(), "rank") != given.end();
  if (command.resume.empty() || !is_worker) return command.resume;
  return runs::own_run(command.resume, command.flags.resolve().rank).string();
}

config::RunConfig resolve_config(const TrainCommand& command, const std::string& resume) {
  if (command.resume.empty()) return command.flags.resolve();
  if (!command.name.empty() || command.flags.config_file_given()) {
    throw ConfigError(
        "--resume takes name and configuration from the run: leave --name and "
        "--config out");
  }
  const config::RunConfig before = engine::read_run_config(resume);
  const config::RunConfig asked = command.flags.resolve(before);
  for (const runs::ChangedSetting& each : runs::forbidden_changes(before, asked)) {
    throw ConfigError("--" + each.name + " cannot change when a run is resumed; these can: " +
                      join(runs::changeable_on_resume(), ", ") +
                      ". For another run from its weights: cohort export, then --init");
  }
  config::RunConfig config = asked;
  const std::vector<std::string> given = command.flags.given();
  const auto is_given = [&](const char* name) {
    return std::find(given.begin(), given.end(), name) != given.end();
  };
  // A run begun with --iterations goes on by epochs when that is what is asked for now.
  if (is_given("epochs") && !is_given("iterations")) config.iterations = 0;
  // How it was started does not bind how it goes on.
  if (!is_given("engine")) config.engine = "auto";
  // The same workers, if the processes that were started now can share them out; else one each.
  if (!is_given("workers") && config.workers % launch::launched_processes() != 0)
    config.workers = 0;
  return config;
}

int run_train(const TrainCommand& command, const std::vector<std::string>& arguments) {
  set_failpoints(command.failpoints);
  runs::RunRequest request;
  request.name = command.name;
  request.runs_dir = command.runs_dir;
  request.resume = folder_to_resume(command);
  request.place.rejoin = command.rejoin->count() > 0;
  if (!command.rejoin_at.empty()) request.place.rejoin_at = {command.rejoin_at};
  if (command.resume.empty()) request.given = command.flags.given_anywhere();
  ConsoleObserver observer;
  observer.json = command.json;
  observer.quiet = command.quiet;
  return train(resolve_config(command, request.resume), request, observer, arguments);
}

}  // namespace

void add_train(CLI::App& program, Invocation& invocation) {
  CLI::App* command = program.add_subcommand("train", "Train a model, or go on with a run");
  auto parsed = std::make_shared<TrainCommand>(*command);
  command->callback(
      [parsed, &invocation] { invocation.exit_status = run_train(*parsed, invocation.arguments); });
}

}  // namespace cohort::apps
