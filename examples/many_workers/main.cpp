// Four workers that gossip compressed differences, trained as `cohort train` does.
#include <atomic>
#include <cstdio>
#include <exception>

#include "runs/run.h"

int main() {
  cohort::config::RunConfig config;
  config.model = "lenet";
  config.data = "synthetic";
  config.method = "choco";
  config.compressor = "sign";
  config.workers = 4;
  config.batch = 25;
  config.epochs = 2;
  cohort::runs::RunObserver observer;  // derive from it to show or change something
  std::atomic<bool> stop = false;
  try {
    const cohort::runs::FinishedRun run = cohort::runs::run_job(config, {}, observer, stop);
    std::printf("accuracy %.3f\n", run.outcome.last->top1);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "many_workers: %s\n", error.what());
    return 1;
  }
}
