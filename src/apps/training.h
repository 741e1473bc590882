// A run on the terminal, behind `cohort train` and the dialects: what is shown of it, and the
// status that the program ends with.
#pragma once

#include <memory>
#include <string>

#include "config/run_config.h"
#include "dialects/flag_names.h"
#include "runs/run.h"
#include "runs/run_observer.h"

namespace cohort::apps {

// Shows a bar on a terminal, plain lines elsewhere, and a summary at the end. Dialects derive from
// it to show what they show instead.
class ConsoleObserver : public runs::RunObserver {
 public:
  // `names`: what a dialect calls our settings.
  explicit ConsoleObserver(dialects::FlagNames names = {}) : names_(std::move(names)) {}

  bool json = false;   // the summary on standard output
  bool quiet = false;  // no progress

  const dialects::FlagNames& names() const { return names_; }

  void opened(const runs::OpenedRun& run) override;
  void workers_start() override;
  runs::WorkerView view(const runs::WorkerSeat& seat) override;
  void note(const std::string& line) override;
  void finished(const runs::FinishedRun& result) override;

 protected:
  // Of a dialect: what it shows instead of the usual display, of a worker that tells of all
  // (seat.totals) or of any; null: the usual one, or nothing. And after which steps.
  virtual std::unique_ptr<engine::Progress> display(const runs::WorkerSeat&) { return nullptr; }
  virtual engine::DueSteps due(Step /*steps_per_epoch*/) { return {}; }
  // Whether its display says all that a summary says.
  virtual bool ends_without_summary() const { return false; }

 private:
  dialects::FlagNames names_;
};

// Runs it; Ctrl-C and SIGTERM end it early. Returns the exit status; throws what main() reports, in
// words of the observer's names. The request's command is `arguments`, its data are looked for
// where the environment says.
int train(const config::RunConfig& config, runs::RunRequest request, ConsoleObserver& observer,
          const std::vector<std::string>& arguments);

}  // namespace cohort::apps
