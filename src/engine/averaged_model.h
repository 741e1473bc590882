// The average of all workers' models in the place of one's own, for as long as this object lives:
// what gossip is evaluated by. Batch-norm statistics are averaged too.
#pragma once

#include <vector>

#include "engine/worker_group.h"
#include "methods/replica.h"

namespace cohort::engine {

class AveragedModel {
 public:
  // All workers make one together. The replica outlives it and holds the model (materialize()).
  AveragedModel(methods::Replica& replica, const WorkerGroup& group);
  ~AveragedModel();  // the worker's own model again, bit for bit
  AveragedModel(const AveragedModel&) = delete;
  AveragedModel& operator=(const AveragedModel&) = delete;

  // How far the workers' parameters are from their average: the root of the mean squared L2
  // distance. The same on all.
  double consensus_distance() const { return consensus_distance_; }

 private:
  methods::Replica& replica_;
  std::vector<float> own_;
  double consensus_distance_ = 0;
};

}  // namespace cohort::engine
