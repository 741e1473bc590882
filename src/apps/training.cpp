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

namespace cohort {

void ConsoleObserver::opened(const OpenedRun& run) {
  if (!quiet) announce_run(run.config, run.parameters, run.data, run.path);
}

void ConsoleObserver::workers_start() { watch_signals(); }

WorkerView ConsoleObserver::view(const WorkerSeat& seat) {
  WorkerView view{.progress = display(seat), .due = due(seat.steps_per_epoch)};
  if (!view.progress && seat.totals != nullptr) {
    view.progress = quiet                 ? make_quiet_progress(stderr)
                    : is_terminal(stderr) ? make_progress_bar(stderr, *seat.totals)
                                          : make_plain_progress(stderr, *seat.totals);
  }
  view.progress =
      view.progress ? translated(std::move(view.progress), names_) : make_silent_progress();
  return view;
}

void ConsoleObserver::note(const std::string& line) { fmt::print(stderr, "{}\n", line); }

void ConsoleObserver::finished(const FinishedRun& result) {
  const TrainingOutcome& outcome = result.outcome;
  if (json) fmt::print("{}\n", result.summary.dump());
  if (result.had_nothing_to_do && !ends_without_summary()) {
    return note(already_done_text(outcome, result.config, result.path.string()));
  }
  if (quiet) return;
  if (ends_without_summary()) return print_interruption(stderr, outcome, result.path);
  TrainingOutcome told = outcome;
  told.warning = in_words_of(names_, told.warning);
  print_summary(stderr, told, result.totals, static_cast<int>(result.config.workers), result.path);
  if (result.swamp) fmt::print(stderr, "server         {}\n", describe(*result.swamp));
}

int train(const RunConfig& config, RunRequest request, ConsoleObserver& observer,
          const std::vector<std::string>& arguments) {
  RunConfig placed = config;
  request.launched = !traits_of(config.method).in_step() && take_place_from_launcher(placed);
  request.command = arguments;
  request.data_search = data_search_path();
  try {
    const TrainingOutcome outcome = run_job(placed, request, observer, stop_flag()).outcome;
    if (!outcome.missing.empty()) {
      observer.note("cohort: " + outcome.missing);
      return 1;
    }
    return outcome.reason == StopReason::kInterrupted ? kExitInterrupted : 0;
  } catch (const ConfigError& error) {
    throw ConfigError(in_words_of(observer.names(), error.what()));
  } catch (const FileError& error) {
    throw FileError(in_words_of(observer.names(), error.what()));
  } catch (const OutOfMemoryError& error) {
    throw RunError(in_words_of(observer.names(), error.what()));
  }
}

}  // namespace cohort
