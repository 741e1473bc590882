// A server's share of the model: parameters, the optimizer's vectors, and how they are updated.
//
// The memory of the arena is never given back: frames are received into it and sent out of it. It
// is there twice once there has been a draft, and by turns the model's.
//
// An update takes effect by and by: settle() brings a stretch up to date, so that values can be
// sent while they are warm and the rest is still being computed. Nobody can see the difference:
// everything that shows the values settles them first.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/aligned_vector.h"
#include "optimizers/optimizer.h"
#include "schedules/learning_rate.h"
#include "server/job_spec.h"

namespace cohort {

class ModelState {
 public:
  // Zeros, of version 0. `spec` is sound and outlives it.
  explicit ModelState(const JobSpec& spec);

  std::span<float> parameters();
  std::size_t slot_count() const { return slots_.size(); }
  std::span<float> slot(std::size_t index);

  std::uint64_t version() const { return version_; }  // updates behind the model
  void set_version(std::uint64_t version) { version_ = version; }

  // The rate of the next update.
  double lr() const;

  // One update by `gradients` times `scale`: a pass of the optimizer for each weight decay. The
  // gradients stay as they are until settled.
  void apply(std::span<const float> gradients, double scale);

  // The same in a second copy, while the gradients come in: the model is what it was until
  // adopt_draft(). begin_draft() forgets the draft before; false: there is no memory for it.
  bool begin_draft(double scale);
  void extend_draft(std::span<const float> gradients);  // the next ones of the arena
  std::size_t drafted() const { return drafting_.done; }
  std::span<const float> draft() const {  // the parameters, as far as they are drafted
    return std::span<const float>(draft_parameters_).first(drafting_.done);
  }
  void adopt_draft();  // which is whole

  // The first `count` parameters, which are then as all updates have left them.
  std::span<const float> settle(std::size_t count);
  void settle() { settle(parameters_.size()); }

 private:
  // The update that is under way.
  struct Pending {
    std::span<const float> gradients = {};  // empty: none is
    UpdateScalars scalars = {};
    std::size_t done = 0;  // elements
  };

  UpdateScalars scalars(double scale) const;
  template <class Place>
  void update(std::span<const float> gradients, std::size_t first, UpdateScalars scalars,
              const Place& place);

  const JobSpec& spec_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<LearningRate> schedule_;
  std::vector<DecayRange> decay_;
  AlignedVector<float> parameters_;
  std::vector<AlignedVector<float>> slots_;
  Pending pending_;
  AlignedVector<float> draft_parameters_;  // empty until the first draft
  std::vector<AlignedVector<float>> draft_slots_;
  Pending drafting_;  // its gradients are not kept
  std::uint64_t version_ = 0;
};

// sum[i] += other[i]
void add_to(std::span<float> sum, std::span<const float> other);

// DC-ASGD (Zheng et al. 2017, equation 10): g <- g + lambda * g * g * (w - w_then).
void compensate_delay(std::span<float> gradients, std::span<const float> now,
                      std::span<const float> then, double lambda);

}  // namespace cohort
