#include "data/sample_order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/random.h"

namespace cohort::data {

std::int64_t steps_in(std::int64_t samples, std::int64_t batch, bool drop_last) {
  return drop_last ? samples / batch : (samples + batch - 1) / batch;
}

SampleOrder::SampleOrder(SampleOrderOptions options) : options_(std::move(options)) {
  SampleOrderOptions& o = options_;
  if (o.workers < 1 || o.rank < 0 || o.rank >= o.workers) {
    throw ConfigError("rank " + std::to_string(o.rank) + " of " + std::to_string(o.workers) +
                      " workers: expected 0 to workers - 1");
  }
  if (o.batch_of_all == 0) {
    if (o.batch < 1 || o.batch > (std::int64_t{1} << 40) / o.workers) {
      throw ConfigError("batch size " + std::to_string(o.batch) + ": expected a positive number");
    }
    o.batch_of_all = o.batch * o.workers;
  }
  if (o.batch_of_all < o.workers) {
    throw ConfigError("a batch of " + std::to_string(o.batch_of_all) + " cannot be divided over " +
                      std::to_string(o.workers) + " workers: one sample each at least");
  }
  count_ = has_own() ? static_cast<std::int64_t>(o.partition.size()) : o.samples;
  steps_per_epoch_ = o.samples < 1 ? 0 : steps_in(o.samples, o.batch_of_all, o.drop_last);
  if (steps_per_epoch_ < 1 || (has_own() && steps_in(count_, batch_size(), o.drop_last) < 1)) {
    throw ConfigError(std::to_string(has_own() ? count_ : o.samples) +
                      " samples do not fill one batch of " +
                      std::to_string(has_own() ? batch_size() : o.batch_of_all) +
                      "; use a smaller batch or more data, or keep the last short batch");
  }
  if (o.start.position > 0) {
    COHORT_CHECK(!has_own(), "a partition starts at the beginning");
    first_steps_ = steps_in(o.samples - o.start.position, o.batch_of_all, o.drop_last);
  }
}

std::int64_t SampleOrder::batch_size() const {
  return (options_.batch_of_all + options_.workers - 1) / options_.workers;
}

std::int64_t SampleOrder::batch_of_all() const { return options_.batch_of_all; }

SampleOrder::Stretch SampleOrder::stretch(Step step) const {
  COHORT_CHECK(step >= options_.start.step, "the order starts at a later step");
  Step since = step - options_.start.step;
  if (has_own()) {
    const Step steps = steps_in(count_, batch_size(), options_.drop_last);
    const std::int64_t begin = since % steps * batch_size();
    return {since / steps, {begin, std::min(batch_size(), count_ - begin)}};
  }
  std::int64_t epoch = options_.start.epoch;
  std::int64_t first = options_.start.position;
  if (first > 0 && since >= first_steps_) {
    since -= first_steps_;
    first = 0;
    ++epoch;
  }
  if (first == 0) {
    epoch += since / steps_per_epoch_;
    since %= steps_per_epoch_;
  }
  const std::int64_t begin = first + since * options_.batch_of_all;
  return {epoch, {begin, std::min(options_.batch_of_all, count_ - begin)}};
}

Range SampleOrder::share_of(Range positions) const {
  if (has_own()) return positions;
  const std::int64_t share = positions.size / options_.workers;
  const std::int64_t longer = positions.size % options_.workers;  // workers that take one more
  const std::int64_t rank = options_.rank;
  return {positions.begin + rank * share + std::min(rank, longer), share + (rank < longer ? 1 : 0)};
}

std::int64_t SampleOrder::samples_of_all(Step step) const {
  // With lists of their own the workers know nothing of each other's; each counts the same.
  return has_own() ? stretch(step).positions.size * options_.workers : stretch(step).positions.size;
}

double SampleOrder::epochs_at(Step steps) const {
  const auto per_epoch = static_cast<double>(steps_per_epoch_);
  const OrderStart& start = options_.start;
  const Step since = steps - start.step;
  const auto epoch = static_cast<double>(start.epoch);
  if (start.position == 0) return epoch + static_cast<double>(since) / per_epoch;
  if (since >= first_steps_)
    return epoch + 1 + static_cast<double>(since - first_steps_) / per_epoch;
  return epoch + static_cast<double>(start.position + since * options_.batch_of_all) /
                     static_cast<double>(options_.samples);
}

std::int64_t SampleOrder::epochs_ended_at(Step steps) const {
  const OrderStart& start = options_.start;
  Step since = steps - start.step;
  std::int64_t epoch = start.epoch;
  if (start.position > 0) {
    if (since < first_steps_) return 0;
    since -= first_steps_;
    ++epoch;
  }
  return since % steps_per_epoch_ == 0 ? epoch + since / steps_per_epoch_ : 0;
}

Step SampleOrder::steps_until(std::int64_t epochs) const {
  const OrderStart& start = options_.start;
  const bool partial = start.position > 0;
  const std::int64_t whole = std::max<std::int64_t>(0, epochs - start.epoch - (partial ? 1 : 0));
  const bool finishes_first = partial && epochs > start.epoch;
  return start.step + (finishes_first ? first_steps_ : 0) + whole * steps_per_epoch_;
}

OrderStart SampleOrder::place_at(Step steps) const {
  const Step first = options_.start.step;
  if (has_own()) return {steps, options_.start.epoch, options_.start.position};
  if (const std::int64_t ended = epochs_ended_at(steps); ended > 0) return {steps, ended, 0};
  if (steps <= first) return {steps, options_.start.epoch, options_.start.position};
  const Stretch last = stretch(steps - 1);
  return {steps, last.epoch, last.positions.end()};
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
  const Stretch all = stretch(step);
  const Range range = share_of(all.positions);
  const Permutation order = permutation(all.epoch);
  const bool own = has_own();
  const auto number = static_cast<std::uint64_t>(all.epoch);
  const auto rank = static_cast<std::uint64_t>(options_.rank);
  out.clear();
  for (std::int64_t i = range.begin; i < range.end(); ++i) {
    const auto position = static_cast<std::uint64_t>(i);
    out.push_back({(*order)[position],
                   own ? derive_seed(options_.seed, "augment own", {number, position, rank})
                       : derive_seed(options_.seed, "augment", {number, position})});
  }
}

}  // namespace cohort::data
