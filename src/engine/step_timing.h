// Times training steps of a group of workers: what the benchmarks measure, with the code that
// trains.
#pragma once

#include <cstdint>
#include <vector>

#include "config/run_config.h"
#include "data/registry.h"
#include "engine/training_step.h"
#include "engine/worker.h"
#include "methods/lateness.h"

namespace cohort::engine {

struct StepTiming {
  Step steps = 0;
  std::int64_t samples = 0;             // of all workers
  double wall_seconds = 0;              // from the first step to the last worker's end of the last
  StepTimes times;                      // mean over the workers
  std::vector<methods::Lateness> late;  // by worker
  Traffic traffic;                      // of one worker, the mean over all
  std::int64_t parameters = 0;
  bool channels_last = false;
};

// Takes `warmup` steps, then `steps` timed ones, on every worker of this process; all processes of
// a job call it together. The result is that of the whole group, on every process. `setup`: as of
// run_workers().
StepTiming time_steps(const config::RunConfig& config, const data::DataSplits& data,
                      std::vector<collectives::Membership>& members, Step warmup, Step steps,
                      const WorkerSetup& setup = {});

}  // namespace cohort::engine
