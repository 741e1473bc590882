#include "data/loader.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "core/clock.h"
#include "core/error.h"

namespace cohort::data {
namespace detail {

struct LoaderSlot {
  std::shared_ptr<float> inputs;
  std::vector<std::int64_t> labels;
  std::vector<SampleRef> refs;
  std::size_t samples = 0;
  Step step = 0;
  std::exception_ptr error;
};

// What readers, the consumer and batches on loan share. Slots move between three places: free,
// being filled by the one reader that took them (or on loan), and ready.
struct LoaderRing {
  std::mutex mutex;  // guards everything below but the contents of taken slots
  std::condition_variable readers_wake;
  std::condition_variable consumer_wakes;
  std::vector<std::unique_ptr<LoaderSlot>> slots;
  std::vector<LoaderSlot*> free;
  std::vector<LoaderSlot*> ready;
  Step next_to_read = 0;
  std::atomic<bool> stopped = false;
};

struct LoaderLease {
  std::shared_ptr<LoaderRing> ring;
  LoaderSlot* slot;

  LoaderLease(std::shared_ptr<LoaderRing> of_ring, LoaderSlot* of_slot)
      : ring(std::move(of_ring)), slot(of_slot) {}
  ~LoaderLease() {
    {
      const std::lock_guard lock(ring->mutex);
      ring->free.push_back(slot);
    }
    ring->readers_wake.notify_one();
  }
  LoaderLease(const LoaderLease&) = delete;
  LoaderLease& operator=(const LoaderLease&) = delete;
};

}  // namespace detail

namespace {

using detail::LoaderLease;
using detail::LoaderRing;
using detail::LoaderSlot;

std::shared_ptr<float> allocate_aligned(std::size_t count) {
  constexpr std::align_val_t kAlignment{64};
  void* memory = ::operator new(count * sizeof(float), kAlignment);
  return {static_cast<float*>(memory), [](float* p) { ::operator delete(p, kAlignment); }};
}

LoaderSlot* take(std::vector<LoaderSlot*>& from, std::size_t place) {
  LoaderSlot* slot = from[place];
  from[place] = from.back();
  from.pop_back();
  return slot;
}

}  // namespace

Loader::Loader(const Dataset& data, const SampleOrder& order, LoaderOptions options)
    : data_(data),
      order_(order),
      options_(std::move(options)),
      sample_numel_(static_cast<std::size_t>(data.shape().numel())),
      sample_labels_(static_cast<std::size_t>(data.labels_per_sample())),
      step_(options_.first_step),
      ring_(std::make_shared<LoaderRing>()) {
  if (options_.threads < 0 || options_.threads > 1024) {
    throw ConfigError("loader threads: " + std::to_string(options_.threads) +
                      "; expected 0 (read when needed) to 1024");
  }
  if (options_.depth < 0) throw ConfigError("loader depth: expected 0 (choose) or more");
  if (!options_.allocate) options_.allocate = allocate_aligned;
  ring_->next_to_read = step_;
  const int depth = options_.depth > 0 ? options_.depth : options_.threads + 2;
  for (int i = 0; i < depth; ++i) add_slot();
  try {
    for (int i = 0; i < options_.threads; ++i) readers_.emplace_back([this] { read_ahead(); });
  } catch (...) {
    // A constructor that throws is not followed by the destructor.
    stop();
    for (std::thread& reader : readers_) reader.join();
    throw;
  }
}

Loader::~Loader() {
  stop();
  for (std::thread& reader : readers_) reader.join();
}

void Loader::stop() {
  {
    const std::lock_guard lock(ring_->mutex);
    ring_->stopped = true;
  }
  ring_->readers_wake.notify_all();
  ring_->consumer_wakes.notify_all();
}

void Loader::add_slot() {
  // A batch larger than the data set never fills, and memory for it may not exist.
  const auto batch =
      static_cast<std::size_t>(std::min(order_.batch_size(), order_.samples_per_epoch()));
  auto slot = std::make_unique<LoaderSlot>();
  slot->inputs = options_.allocate(batch * sample_numel_);
  slot->labels.reserve(batch * sample_labels_);
  slot->refs.reserve(batch);
  const std::lock_guard lock(ring_->mutex);
  // Room for all in each list, so that giving a slot back never allocates and so never throws.
  ring_->slots.push_back(std::move(slot));
  ring_->free.reserve(ring_->slots.size());
  ring_->ready.reserve(ring_->slots.size());
  ring_->free.push_back(ring_->slots.back().get());
}

void Loader::fill(LoaderSlot& slot, Step step) const {
  slot.step = step;
  slot.error = nullptr;
  slot.labels.clear();
  slot.samples = 0;
  try {
    order_.batch(step, slot.refs);
    slot.labels.resize(slot.refs.size() * sample_labels_);
    float* out = slot.inputs.get();
    for (const SampleRef& ref : slot.refs) {
      if (ring_->stopped.load(std::memory_order_relaxed)) return;
      data_.read_labels(
          ref.index, std::span(slot.labels).subspan(slot.samples * sample_labels_, sample_labels_));
      data_.read(ref.index, ref.augmentation, {out, sample_numel_});
      out += sample_numel_;
      ++slot.samples;
    }
  } catch (...) {
    slot.error = std::current_exception();
  }
}

void Loader::read_ahead() {
  LoaderRing& ring = *ring_;
  std::unique_lock lock(ring.mutex);
  while (true) {
    // Ends by stop(), which the destructor calls: this wait has no other reason to give up.
    ring.readers_wake.wait(lock, [&] {
      return ring.stopped || ring.next_to_read >= options_.last_step || !ring.free.empty();
    });
    if (ring.stopped || ring.next_to_read >= options_.last_step) return;
    const Step step = ring.next_to_read++;
    LoaderSlot* slot = take(ring.free, ring.free.size() - 1);
    lock.unlock();
    fill(*slot, step);
    lock.lock();
    ring.ready.push_back(slot);
    ring.consumer_wakes.notify_one();
  }
}

LoaderSlot* Loader::wait_for(Step step) {
  LoaderRing& ring = *ring_;
  const Deadline deadline = deadline_in(options_.timeout);
  std::unique_lock lock(ring.mutex);
  bool late = false;
  while (true) {
    if (ring.stopped) throw RunError("the loader was stopped");
    for (std::size_t i = 0; i < ring.ready.size(); ++i) {
      if (ring.ready[i]->step == step) return take(ring.ready, i);
    }
    // All buffers on loan and nobody has begun this batch: waiting would be for ever.
    if (ring.free.empty() && ring.next_to_read == step) {
      lock.unlock();
      add_slot();
      ring.readers_wake.notify_one();
      lock.lock();
      continue;
    }
    if (late) {
      throw RunError("no batch for step " + std::to_string(step) + " within " +
                     std::to_string(options_.timeout.count()) +
                     " ms: is the disk of the data set reachable?");
    }
    late = ring.consumer_wakes.wait_until(lock, deadline) == std::cv_status::timeout;
  }
}

LoaderSlot* Loader::read_now(Step step) {
  if (ring_->stopped) throw RunError("the loader was stopped");
  LoaderSlot* slot = nullptr;
  while (slot == nullptr) {
    {
      const std::lock_guard lock(ring_->mutex);
      if (!ring_->free.empty()) slot = take(ring_->free, ring_->free.size() - 1);
    }
    if (slot == nullptr) add_slot();
  }
  fill(*slot, step);
  return slot;
}

LoadedBatch Loader::next() {
  COHORT_CHECK(!done(), "no batch after the last");
  LoaderSlot* slot = options_.threads == 0 ? read_now(step_) : wait_for(step_);
  ++step_;
  LoadedBatch batch;
  batch.lease_ = std::make_shared<LoaderLease>(ring_, slot);
  if (slot->error) std::rethrow_exception(std::exchange(slot->error, nullptr));
  if (ring_->stopped) throw RunError("the loader was stopped");
  batch.inputs_ = {slot->inputs.get(), slot->samples * sample_numel_};
  batch.labels_ = slot->labels;
  batch.size_ = static_cast<std::int64_t>(slot->samples);
  batch.step_ = slot->step;
  return batch;
}

}  // namespace cohort::data
