// The run's folder with everything that goes there, in the process that keeps it.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "engine/trainer.h"
#include "metrics/run_totals.h"
#include "metrics/tee_sink.h"
#include "runs/run_files.h"
#include "runs/run_observer.h"
#include "storage/dump_writer.h"

namespace cohort::runs {

class RunKeeper {
 public:
  // `document` is the run's run.json, as it is to be. `resumed`: it goes on.
  RunKeeper(RunFiles files, nlohmann::json document, bool resumed);
  RunKeeper(const RunKeeper&) = delete;
  RunKeeper& operator=(const RunKeeper&) = delete;

  RunFiles& files() { return files_; }
  const std::filesystem::path& path() const { return files_.run.path(); }
  const nlohmann::json& document() const { return document_; }
  // Everything that is recorded goes to the run's folder, and is added up.
  metrics::MetricsSink& metrics() { return metrics_; }
  const metrics::TotalsSink& totals() const { return totals_; }
  storage::DumpWriter* dumps() { return dumps_.get(); }  // null: no models are dumped

  // Where the worker that tells of all writes.
  engine::TrainerOutlets outlets(engine::Progress& progress);

  // Lets models be dumped, if the configuration wants it, in the folder `root` of the run's.
  void start_dumps(const config::RunConfig& config, const std::string& root, double earlier_seconds,
                   const std::function<void(const std::string&)>& note);
  // All models are written; what could not be is noted.
  void finish_dumps(const std::function<void(const std::string&)>& note);

  // Brings a run that goes on up to date: run.json, and the trainer to the checkpoint, if there is
  // one. Throws ConfigError when that is beyond `total` steps.
  void resume(engine::Trainer& trainer, const config::RunConfig& config, Step total);

  // Writes the summary of `result`, and completes it.
  void summarize(FinishedRun& result);

 private:
  RunFiles files_;
  nlohmann::json document_;
  bool resumed_;
  metrics::TotalsSink totals_;  // of this sitting
  metrics::TeeSink metrics_;
  std::unique_ptr<storage::DumpWriter> dumps_;
};

}  // namespace cohort::runs
