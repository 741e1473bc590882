// A server's share of the model: parameters, the optimizer's vectors, and how they are updated.
//
// The memory of the arena never moves: frames are received into it and sent out of it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "optimizers/optimizer.h"
#include "schedules/learning_rate.h"
#include "server/job_spec.h"

namespace cohort {

class ModelState {
 public:
  // Zeros, of version 0. `spec` is sound and outlives it.
  explicit ModelState(const JobSpec& spec);

  std::span<float> parameters() { return parameters_; }
  std::span<const float> parameters() const { return parameters_; }
  std::vector<std::vector<float>>& slots() { return slots_; }
  const std::vector<std::vector<float>>& slots() const { return slots_; }

  std::uint64_t version() const { return version_; }  // updates behind the model
  void set_version(std::uint64_t version) { version_ = version; }

  // The rate of the next update.
  double lr() const;

  // One update by `gradients` times `scale`: a pass of the optimizer for each weight decay.
  void apply(std::span<const float> gradients, double scale);

 private:
  const JobSpec& spec_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<LearningRate> schedule_;
  std::vector<DecayRange> decay_;
  std::vector<float> parameters_;
  std::vector<std::vector<float>> slots_;
  std::uint64_t version_ = 0;
};

// sum[i] += other[i]
void add_to(std::span<float> sum, std::span<const float> other);

// DC-ASGD (Zheng et al. 2017, equation 10): g <- g + lambda * g * g * (w - w_then).
void compensate_delay(std::span<float> gradients, std::span<const float> now,
                      std::span<const float> then, double lambda);

}  // namespace cohort
