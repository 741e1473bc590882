#include "apps/training.h"

#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "apps/announcements.h"
#include "apps/environment.h"
#include "core/error.h"
#include "core/exit_status.h"
#include "dialects/translated_progress.h"
#include "methods/method_traits.h"
#include "runs/memory.h"
#include "runs/run_summary.h"
#include "runs/swamp_host.h"

namespace cohort::apps {

void ConsoleObserver::opened(const runs::OpenedRun& run) {
  if (!quiet) announce_run(run.config, run.parameters, run.data, run.path);
}

void ConsoleObserver::workers_start() { watch_signals(); }

runs::WorkerView ConsoleObserver::view(const runs::WorkerSeat& seat) {
  runs::WorkerView view{.progress = display(seat), .due = due(seat.steps_per_epoch)};
  if (!view.progress && seat.totals != nullptr) {
    view.progress = quiet                 ? engine::make_quiet_progress(stderr)
                    : is_terminal(stderr) ? engine::make_progress_bar(stderr, *seat.totals)
                                          : engine::make_plain_progress(stderr, *seat.totals);
  }
  view.progress = view.progress ? dialects::translated(std::move(view.progress), names_)
                                : engine::make_silent_progress();
  return view;
}

void ConsoleObserver::note(const std::string& line) { fmt::print(stderr, "{}\n", line); }

void ConsoleObserver::finished(const runs::FinishedRun& result) {
  const engine::TrainingOutcome& outcome = result.outcome;
  if (json) fmt::print("{}\n", result.summary.dump());
  if (result.had_nothing_to_do && !ends_without_summary()) {
    return note(runs::already_done_text(outcome, result.config, result.path.string()));
  }
  if (quiet) return;
  if (ends_without_summary()) return print_interruption(stderr, outcome, result.path);
  engine::TrainingOutcome told = outcome;
  told.warning = dialects::in_words_of(names_, told.warning);
  print_summary(stderr, told, result.totals, static_cast<int>(result.config.workers), result.path);
  if (result.swamp) fmt::print(stderr, "server         {}\n", runs::describe(*result.swamp));
}

int train(const config::RunConfig& config, runs::RunRequest request, ConsoleObserver& observer,
          const std::vector<std::string>& arguments) {
  config::RunConfig placed = config;
  request.launched =
      !methods::traits_of(config.method).in_step() && take_place_from_launcher(placed);
  request.command = arguments;
  request.data_search = data_search_path();
  try {
    const engine::TrainingOutcome outcome =
        runs::run_job(placed, request, observer, stop_flag()).outcome;
    if (!outcome.missing.empty()) {
      observer.note("cohort: " + outcome.missing);
      return 1;
    }
    return outcome.reason == engine::StopReason::kInterrupted ? kExitInterrupted : 0;
  } catch (const ConfigError& error) {
    throw ConfigError(dialects::in_words_of(observer.names(), error.what()));
  } catch (const FileError& error) {
    throw FileError(dialects::in_words_of(observer.names(), error.what()));
  } catch (const OutOfMemoryError& error) {
    throw RunError(dialects::in_words_of(observer.names(), error.what()));
  }
}

}  // namespace cohort::apps
