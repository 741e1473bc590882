// Which samples a worker sees at which step.
//
// Without a partition the order of an epoch is one permutation of all samples that depends on
// (seed, epoch) only. Global batch s covers its positions [s B W, (s + 1) B W) for W workers of
// batch B, and worker r takes the r-th contiguous slice, so that the same samples make up the
// same global batch however many workers share it (B W being equal). The last global batch of an
// epoch, when short, is divided as evenly as possible, the first workers taking one more; with
// fewer than W samples left the last workers' batches are empty. drop_last leaves it out instead.
//
// With a partition the worker permutes its own list by (seed, epoch, rank), its last batch is
// short, and its epoch has steps_in(its list) steps: workers with parts of different size begin
// their next epochs at different steps.
//
// Epochs follow each other: every step >= 0 has a batch. Unchanging; const methods may be called
// from several threads (the permutations of the two latest epochs are kept behind a mutex).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/types.h"

namespace cohort {

struct SampleRef {
  std::int64_t index;          // in the data set
  std::uint64_t augmentation;  // for Dataset::read; depends on (seed, epoch, position) only
  friend bool operator==(const SampleRef&, const SampleRef&) = default;
};

struct SampleOrderOptions {
  std::int64_t samples = 0;                  // size of the data set; ignored with a partition
  std::vector<std::int64_t> partition = {};  // the worker's own samples, or empty
  std::int64_t batch = 1;                    // for one worker
  Rank rank = 0;
  int workers = 1;
  Seed seed = 0;
  bool shuffle = true;  // false: the order of the data set (or list), every epoch
  bool drop_last = false;
};

// Steps for one pass over `samples` in batches of `batch`.
std::int64_t steps_in(std::int64_t samples, std::int64_t batch, bool drop_last);

class SampleOrder {
 public:
  // Throws ConfigError when an epoch would have no steps, or a number makes no sense.
  explicit SampleOrder(SampleOrderOptions options);

  std::int64_t batch_size() const { return options_.batch; }  // no batch is larger
  std::int64_t steps_per_epoch() const { return steps_per_epoch_; }
  std::int64_t samples_per_epoch() const { return count_; }  // of all workers, or of the partition

  std::vector<SampleRef> batch(Step step) const;
  // The same into `out`, whose memory is reused.
  void batch(Step step, std::vector<SampleRef>& out) const;

 private:
  using Permutation = std::shared_ptr<const std::vector<std::int64_t>>;

  Permutation permutation(std::int64_t epoch) const;
  Range positions(std::int64_t step_in_epoch) const;

  SampleOrderOptions options_;
  std::int64_t count_;
  std::int64_t steps_per_epoch_;

  struct Kept {
    std::int64_t epoch = -1;
    Permutation order;
  };
  mutable std::mutex mutex_;  // guards kept_
  mutable Kept kept_[2];      // the latest first
};

}  // namespace cohort
