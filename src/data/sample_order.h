// Which samples a worker sees at which step.
//
// Without a partition the order of an epoch is one permutation of all samples that depends on
// (seed, epoch) only. Global batch s covers its positions [s B W, (s + 1) B W) for W workers of
// batch B, and worker r takes the r-th contiguous slice, so that the same samples make up the
// same global batch however many workers share it (B W being equal). The last global batch of an
// epoch, when short, is divided as evenly as possible, the first workers taking one more; with
// fewer than W samples left the last workers' batches are empty. drop_last leaves it out instead.
//
// With a partition the worker permutes its own list by (seed, pass, rank) and goes through it again
// and again; the last batch of a pass is short. Workers with lists of different length begin their
// next passes at different steps, but an epoch is the same for all: as many steps as one pass over
// the whole data set takes the whole group.
//
// Epochs follow each other: every step has a batch. A run that goes on with another number of
// workers or another batch starts in the middle of an epoch (OrderStart) and sees the rest of it
// exactly once.
//
// Unchanging; const methods may be called from several threads (the permutations of the two latest
// epochs are kept behind a mutex).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/types.h"

namespace cohort::data {

struct SampleRef {
  std::int64_t index;          // in the data set
  std::uint64_t augmentation;  // for Dataset::read; depends on (seed, epoch, position) only
  friend bool operator==(const SampleRef&, const SampleRef&) = default;
};

// At `step` the order stands in epoch `epoch` before the sample at `position` of its permutation.
struct OrderStart {
  Step step = 0;
  std::int64_t epoch = 0;
  std::int64_t position = 0;
  friend bool operator==(const OrderStart&, const OrderStart&) = default;
};

struct SampleOrderOptions {
  std::int64_t samples = 0;                  // size of the data set
  std::vector<std::int64_t> partition = {};  // the worker's own samples, or empty
  std::int64_t batch = 1;                    // for one worker; 0 when batch_of_all says it
  std::int64_t batch_of_all = 0;             // of all workers together; 0: batch x workers
  Rank rank = 0;
  int workers = 1;
  Seed seed = 0;
  bool shuffle = true;  // false: the order of the data set (or list), every epoch
  bool drop_last = false;
  OrderStart start = {};  // a partition can only start at the beginning
};

// Steps for one pass over `samples` in batches of `batch`.
std::int64_t steps_in(std::int64_t samples, std::int64_t batch, bool drop_last);

class SampleOrder {
 public:
  // Throws ConfigError when an epoch would have no steps, or a number makes no sense.
  explicit SampleOrder(SampleOrderOptions options);

  std::int64_t batch_size() const;    // no batch of this worker is larger
  std::int64_t batch_of_all() const;  // samples of all workers in a whole step
  const OrderStart& start() const { return options_.start; }
  std::int64_t steps_per_epoch() const { return steps_per_epoch_; }  // of a whole epoch
  std::int64_t samples_per_epoch() const { return count_; }  // of all workers, or of the partition

  // step >= start.step in all of these.
  std::vector<SampleRef> batch(Step step) const;
  // The same into `out`, whose memory is reused.
  void batch(Step step, std::vector<SampleRef>& out) const;
  // Samples that all workers have in this step.
  std::int64_t samples_of_all(Step step) const;

  // Epochs behind one who has taken `steps` steps, with a fraction.
  double epochs_at(Step steps) const;
  // The whole epochs behind him if an epoch has just ended, else 0.
  std::int64_t epochs_ended_at(Step steps) const;
  // Steps to take until `epochs` are behind one.
  Step steps_until(std::int64_t epochs) const;
  // Where the order stands after `steps` steps: what another order goes on from.
  OrderStart place_at(Step steps) const;

 private:
  using Permutation = std::shared_ptr<const std::vector<std::int64_t>>;

  // An epoch (or pass over the own list) and the stretch of it that all workers take together.
  struct Stretch {
    std::int64_t epoch;
    Range positions;
  };

  bool has_own() const { return !options_.partition.empty(); }
  Permutation permutation(std::int64_t epoch) const;
  Stretch stretch(Step step) const;
  Range share_of(Range positions) const;  // this worker's part

  SampleOrderOptions options_;
  std::int64_t count_;
  std::int64_t steps_per_epoch_;
  std::int64_t first_steps_ = 0;  // left of the epoch the order starts in the middle of

  struct Kept {
    std::int64_t epoch = -1;
    Permutation order;
  };
  mutable std::mutex mutex_;  // guards kept_
  mutable Kept kept_[2];      // the latest first
};

}  // namespace cohort::data
