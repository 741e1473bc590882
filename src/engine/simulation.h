// Gossip of many workers in one process, on a few threads: how a method, a graph and a compressor
// behave with a thousand workers, on one machine.
//
// Every worker has its model, optimizer state and gossip node, and nothing else; threads take turns
// in being one. In a step first all workers compute, step and send, then all receive and mix, so
// the result is that of as many real workers, and does not depend on the number of threads.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "config/run_config.h"
#include "data/registry.h"
#include "engine/evaluator.h"

namespace cohort::engine {

// The workers after some steps.
struct SimulatedMoment {
  Step step = 0;
  double epoch = 0;
  double loss = 0;      // mean training loss since the last moment
  double accuracy = 0;  // mean training top-1 since then
  double lr = 0;
  std::int64_t samples = 0;           // of all workers since then
  double consensus_distance = 0;      // root mean squared L2 distance to the average
  std::uint64_t bytes_sent = 0;       // by all workers since then
  std::optional<Evaluation> average;  // of the average of the models, where it was evaluated
};

class Simulation {
 public:
  // Everything outlives it but `config`. Throws ConfigError for methods other than gossip.
  Simulation(const config::RunConfig& config, const data::DataSplits& data);
  ~Simulation();

  Step steps_per_epoch() const;
  Step total_steps() const;
  std::int64_t parameters() const;  // of one model

  // Trains to the end, or until `stop` is set; tells every --record-every steps and at every
  // evaluation. Throws RunError when training diverges.
  void run(const std::atomic<bool>& stop, const std::function<void(const SimulatedMoment&)>& tell);

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace cohort::engine
