// Reads batches ahead of the one who trains on them.
//
//   Loader loader(data, order, {.threads = 2, .last_step = 1000});
//   while (!loader.done()) {
//     LoadedBatch batch = loader.next();
//     ...  // batch.inputs(), batch.labels()
//   }    // the buffer goes back into the ring
//
// `threads` readers each prepare whole batches into a ring of reused buffers; with 0 next() reads
// by itself. Batches come in the exact order of the steps and are the same for every number of
// threads. One thread calls next(); stop() may be called from any. The data set and the order
// must outlive the loader, but batches need not be returned before it is destroyed: a batch keeps
// the memory it lies in alive.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "core/types.h"
#include "data/dataset.h"
#include "data/sample_order.h"

namespace cohort::data {

namespace detail {
struct LoaderRing;
struct LoaderSlot;
struct LoaderLease;
}  // namespace detail

// A batch in a buffer on loan: moved or copied as one likes, the buffer goes back to the ring
// when the last copy is gone. May be destroyed in any thread, and after the loader.
class LoadedBatch {
 public:
  std::span<float> inputs() const { return inputs_; }               // size() x shape().numel()
  std::span<const std::int64_t> labels() const { return labels_; }  // size() x labels_per_sample()
  std::int64_t size() const { return size_; }
  Step step() const { return step_; }

 private:
  friend class Loader;
  std::span<float> inputs_;
  std::span<const std::int64_t> labels_;
  std::int64_t size_ = 0;
  Step step_ = 0;
  std::shared_ptr<detail::LoaderLease> lease_;
};

struct LoaderOptions {
  int threads = 1;
  int depth = 0;  // buffers in the ring; 0: threads + 2
  Step first_step = 0;
  Step last_step = std::numeric_limits<Step>::max();  // exclusive
  // Gives memory for that many floats, for instance pinned. Called in the thread that builds the
  // loader or calls next(). Unset: ordinary memory, aligned to 64 bytes.
  std::function<std::shared_ptr<float>(std::size_t)> allocate = {};
  // How long next() waits for a batch before it gives up with RunError.
  std::chrono::milliseconds timeout = std::chrono::minutes(10);
};

class Loader {
 public:
  Loader(const Dataset& data, const SampleOrder& order, LoaderOptions options);
  ~Loader();  // stops, and joins the readers after the sample each is at
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  bool done() const { return step_ >= options_.last_step; }

  // The next step's batch; not to be called when done(). What the data set threw while the batch
  // was read is thrown here, and the batch after it comes next. Throws RunError after stop() or a
  // timeout. A caller that keeps more batches than the ring has buffers makes the ring grow.
  LoadedBatch next();

  // Makes readers and next() give up. Idempotent.
  void stop();

 private:
  void read_ahead();
  void fill(detail::LoaderSlot& slot, Step step) const;
  void add_slot();
  detail::LoaderSlot* wait_for(Step step);
  detail::LoaderSlot* read_now(Step step);

  const Dataset& data_;
  const SampleOrder& order_;
  LoaderOptions options_;
  std::size_t sample_numel_;
  std::size_t sample_labels_;
  Step step_;
  std::shared_ptr<detail::LoaderRing> ring_;
  std::vector<std::thread> readers_;
};

}  // namespace cohort::data
