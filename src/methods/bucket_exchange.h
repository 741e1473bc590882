// Sums buckets of the gradient arena over all ranks, one after another, on a thread of its own
// while backward goes on.
//
// submit() and wait() belong to the training side, which calls them from one thread at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "collectives/collectives.h"
#include "core/types.h"
#include "methods/arrival_log.h"

namespace cohort::methods {

class BucketExchange {
 public:
  // `collectives` sums in main memory, or, with `on_device`, where the arena lies; `arena` is
  // copied through main memory where the two differ. Both outlive this object. `patience` is how
  // long one sum may wait for the other ranks. `arrivals` is told when each bucket is complete.
  BucketExchange(collectives::Collectives& collectives, bool on_device,
                 std::chrono::nanoseconds patience, ArrivalLog* arrivals = nullptr);
  ~BucketExchange();  // what is submitted but not begun is dropped
  BucketExchange(const BucketExchange&) = delete;
  BucketExchange& operator=(const BucketExchange&) = delete;

  // The range's elements are complete as far as the caller's stream is concerned, and nobody
  // touches them before wait() has returned. All ranks submit the same ranges in the same order.
  void submit(const at::Tensor& arena, Range range);

  // Returns when everything submitted is summed. Throws what a sum threw.
  void wait();

 private:
  struct Work {
    at::Tensor values;
    std::function<void()> wait_until_complete;  // for the device; empty in main memory
  };

  void run();
  void sum(const Work& work);

  collectives::Collectives& collectives_;
  bool on_device_;
  std::chrono::nanoseconds patience_;
  ArrivalLog* arrivals_;

  std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  std::deque<Work> waiting_;
  int unfinished_ = 0;
  bool stopping_ = false;
  std::exception_ptr error_;
  std::thread thread_;  // last: it uses all of the above
};

// Replaces the elements of a dense tensor on any device by their sum over all ranks.
void sum_over_ranks(collectives::Collectives& collectives, bool on_device, const at::Tensor& values,
                    Deadline deadline);

// Replaces them by those of `root`.
void broadcast_from(collectives::Collectives& collectives, Rank root, const at::Tensor& values,
                    Deadline deadline);

}  // namespace cohort::methods
