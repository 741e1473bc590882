// When a rank's gradients were ready to be sent, step by step.
//
// How long a phase took cannot say who is slow: in a synchronous step everybody waits for the last
// one, and the waiting shows in the clocks of those who were early. When each bucket was ready can.
//
// Written by the threads that load, compute and exchange, which take turns: nobody begins a step
// before the last bucket of the one before is summed. Read between steps.
#pragma once

#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/types.h"

namespace cohort::methods {

// Times are seconds of the monotonic clock, which the processes of one host share.
struct StepArrivals {
  Step step = 0;
  double data_seconds = 0;        // the rank waited for this batch
  std::vector<double> buckets{};  // when each bucket was ready, in the order sent
};

class ArrivalLog {
 public:
  // The batch of `step` is there.
  void begin(Step step, double data_seconds) { steps_.push_back({step, data_seconds, {}}); }

  // The next bucket of the step is ready to be sent.
  void arrived() {
    if (!steps_.empty()) steps_.back().buckets.push_back(now());
  }

  // Everything since the last call.
  std::vector<StepArrivals> take() { return std::exchange(steps_, {}); }

  static double now() {
    return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
  }

 private:
  std::vector<StepArrivals> steps_;
};

}  // namespace cohort::methods
