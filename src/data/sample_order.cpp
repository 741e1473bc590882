#include "data/sample_order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/random.h"

namespace cohort {

std::int64_t steps_in(std::int64_t samples, std::int64_t batch, bool drop_last) {
  return drop_last ? samples / batch : (samples + batch - 1) / batch;
}

SampleOrder::SampleOrder(SampleOrderOptions options) : options_(std::move(options)) {
  const SampleOrderOptions& o = options_;
  if (o.workers < 1 || o.rank < 0 || o.rank >= o.workers) {
    throw ConfigError("rank " + std::to_string(o.rank) + " of " + std::to_string(o.workers) +
                      " workers: expected 0 to workers - 1");
  }
  if (o.batch < 1 || o.batch > (std::int64_t{1} << 40) / o.workers) {
    throw ConfigError("batch size " + std::to_string(o.batch) + ": expected a positive number");
  }
  const bool own = !o.partition.empty();
  count_ = own ? static_cast<std::int64_t>(o.partition.size()) : o.samples;
  const std::int64_t step_samples = own ? o.batch : o.batch * o.workers;
  steps_per_epoch_ = count_ < 1 ? 0 : steps_in(count_, step_samples, o.drop_last);
  if (steps_per_epoch_ < 1) {
    throw ConfigError(std::to_string(count_) + " samples do not fill one batch of " +
                      std::to_string(step_samples) +
                      "; use a smaller batch or more data, or keep the last short batch");
  }
}

Range SampleOrder::positions(std::int64_t step_in_epoch) const {
  if (!options_.partition.empty()) {
    const std::int64_t begin = step_in_epoch * options_.batch;
    return {begin, std::min(options_.batch, count_ - begin)};
  }
  const std::int64_t begin = step_in_epoch * options_.batch * options_.workers;
  const std::int64_t size = std::min(options_.batch * options_.workers, count_ - begin);
  const std::int64_t share = size / options_.workers;
  const std::int64_t longer = size % options_.workers;  // workers that take one more
  const std::int64_t rank = options_.rank;
  return {begin + rank * share + std::min(rank, longer), share + (rank < longer ? 1 : 0)};
}

SampleOrder::Permutation SampleOrder::permutation(std::int64_t epoch) const {
  const std::lock_guard lock(mutex_);
  for (const Kept& kept : kept_) {
    if (kept.epoch == epoch) return kept.order;
  }
  // Computed under the lock: readers that want the same epoch would only repeat the work.
  auto order = std::make_shared<std::vector<std::int64_t>>(options_.partition);
  const auto number = static_cast<std::uint64_t>(epoch);
  const bool own = !order->empty();
  if (!own) {
    order->resize(static_cast<std::size_t>(count_));
    std::iota(order->begin(), order->end(), 0);
  }
  if (options_.shuffle) {
    RandomStream random = own ? RandomStream(options_.seed, "own order",
                                             {number, static_cast<std::uint64_t>(options_.rank)})
                              : RandomStream(options_.seed, "order", {number});
    cohort::shuffle(std::span(*order), random);
  }
  const bool later = epoch > kept_[0].epoch;
  if (later) kept_[1] = std::move(kept_[0]);
  kept_[later ? 0 : 1] = {epoch, order};
  return order;
}

std::vector<SampleRef> SampleOrder::batch(Step step) const {
  std::vector<SampleRef> refs;
  batch(step, refs);
  return refs;
}

void SampleOrder::batch(Step step, std::vector<SampleRef>& out) const {
  COHORT_CHECK(step >= 0, "steps count from 0");
  const std::int64_t epoch = step / steps_per_epoch_;
  const Range range = positions(step % steps_per_epoch_);
  const Permutation order = permutation(epoch);
  const bool own = !options_.partition.empty();
  const auto number = static_cast<std::uint64_t>(epoch);
  const auto rank = static_cast<std::uint64_t>(options_.rank);
  out.clear();
  for (std::int64_t i = range.begin; i < range.end(); ++i) {
    const auto position = static_cast<std::uint64_t>(i);
    out.push_back({(*order)[position],
                   own ? derive_seed(options_.seed, "augment own", {number, position, rank})
                       : derive_seed(options_.seed, "augment", {number, position})});
  }
}

}  // namespace cohort
