// A server's share of the model: parameters, the optimizer's vectors, and how they are updated.
//
// The memory of the arena is never given back: frames are received into it and sent out of it. It
// is there twice once there has been a speculative update, and by turns the model's.
//
// Updates take effect by and by: materialize() brings the first elements up to a version, so that
// values can be sent while they are warm, while those behind them are still of the version before,
// or of one before that. Who reads the memory asks for the version that it wants, before or while
// others ask for newer ones of what it has read.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/aligned_vector.h"
#include "optimizers/optimizer.h"
#include "schedules/learning_rate.h"
#include "server/job_spec.h"

namespace cohort::server {

class ModelState {
 public:
  // Zeros, of version 0. `spec` is sound and outlives it.
  explicit ModelState(const JobSpec& spec);

  // As far as they are materialized.
  std::span<float> parameters() { return parameters_; }
  std::size_t slot_count() const { return slots_.size(); }
  std::span<float> slot(std::size_t index) { return slots_[index]; }

  // A copy of the parameters as all updates leave them.
  std::vector<float> preview() const;

  std::uint64_t version() const { return version_; }  // updates behind the model
  void set_version(std::uint64_t version) { version_ = version; }

  // The rate of the next update.
  double lr() const;

  // One update by `gradients` times `scale`: a pass of the optimizer for each weight decay. The
  // gradients stay as they are until it is materialized.
  void queue_update(std::span<const float> gradients, double scale);

  // How many of the first elements are of that version, or of a newer one.
  std::size_t materialized(std::uint64_t version) const;
  // Makes the first `count` elements those of that version, where they are older.
  void materialize(std::uint64_t version, std::size_t count);
  // The newest version that waits for what this memory holds.
  std::optional<std::uint64_t> waits_for(std::span<const float> gradients) const;

  // The same in a second copy, while the gradients come in: the model is what it was until
  // adopt_speculation(), and all of it materialized. begin_speculation() forgets the one before;
  // false: there is no memory for it.
  bool begin_speculation(double scale);
  void extend_speculation(std::span<const float> gradients);  // the next ones of the arena
  std::size_t speculated() const { return speculating_.done; }
  std::span<const float> speculative_parameters() const {  // as far as speculated()
    return std::span<const float>(speculative_parameters_).first(speculating_.done);
  }
  void adopt_speculation();  // which is whole
  // The memory that is not the model's now, but may have been.
  std::vector<std::span<const float>> second_copy() const;

 private:
  // An update that is under way.
  struct Pending {
    std::span<const float> gradients = {};
    optimizers::UpdateScalars scalars = {};
    std::uint64_t version = 0;  // that it makes
    std::size_t done = 0;       // elements
  };

  optimizers::UpdateScalars scalars(double scale) const;
  template <class Place>
  void update(std::span<const float> gradients, std::size_t first,
              optimizers::UpdateScalars scalars, const Place& place) const;
  static optimizers::UpdateBlock block_of(std::span<float> parameters,
                                          std::vector<AlignedVector<float>>& slots,
                                          std::size_t begin, std::size_t size);

  const JobSpec& spec_;
  std::unique_ptr<optimizers::Optimizer> optimizer_;
  std::unique_ptr<schedules::LearningRate> schedule_;
  std::vector<DecayRange> decay_;
  AlignedVector<float> parameters_;
  std::vector<AlignedVector<float>> slots_;
  std::deque<Pending> pending_;  // the oldest first, each at most as far as the one before it
  AlignedVector<float> speculative_parameters_;  // empty until the first begin_speculation()
  std::vector<AlignedVector<float>> speculative_slots_;
  Pending speculating_;  // its gradients are not kept
  std::uint64_t version_ = 0;
};

// sum[i] += other[i]
void add_to(std::span<float> sum, std::span<const float> other);

// DC-ASGD (Zheng et al. 2017, equation 10): g <- g + lambda * g * g * (w - w_then).
void compensate_delay(std::span<float> gradients, std::span<const float> now,
                      std::span<const float> then, double lambda);

}  // namespace cohort::server
