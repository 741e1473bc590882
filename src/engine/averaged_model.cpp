#include "engine/averaged_model.h"

#include <cmath>

#include "methods/flat_model.h"

namespace cohort::engine {

AveragedModel::AveragedModel(methods::Replica& replica, const WorkerGroup& group)
    : replica_(replica), own_(static_cast<std::size_t>(methods::flat_size(replica))) {
  methods::copy_model_to(own_, replica);
  std::vector<float> mean = own_;
  group.sum(mean);
  const auto size = static_cast<float>(group.present());
  for (float& value : mean) value /= size;
  const std::size_t parameters =
      own_.size() - static_cast<std::size_t>(replica.statistics().numel());
  double squared = 0;
  for (std::size_t i = 0; i < parameters; ++i) {
    const double difference = static_cast<double>(own_[i]) - static_cast<double>(mean[i]);
    squared += difference * difference;
  }
  auto all = static_cast<float>(squared);
  group.sum({&all, 1});
  consensus_distance_ = std::sqrt(static_cast<double>(all) / group.present());
  methods::copy_model_from(mean, replica);
}

AveragedModel::~AveragedModel() { methods::copy_model_from(own_, replica_); }

}  // namespace cohort::engine
