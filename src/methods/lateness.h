// Who held the others up, and why.
#pragma once

#include <span>
#include <vector>

#include "methods/arrival_log.h"

namespace cohort::methods {

// Of one rank, over the steps looked at.
struct Lateness {
  Step steps_last = 0;      // steps in which its gradients were the last to be ready
  double seconds = 0;       // by how much in all, against the median of the others
  double data_seconds = 0;  // of these, explained by waiting for data longer than the others

  void add(const Lateness& other) {
    steps_last += other.steps_last;
    seconds += other.seconds;
    data_seconds += other.data_seconds;
  }
};

// `ranks[r]` is rank r's log of the same steps; `clock_offset[r]` seconds are to be taken off its
// times to read them on rank 0's clock (empty: none). Steps that are not in every log are left out.
std::vector<Lateness> find_late(std::span<const std::vector<StepArrivals>> ranks,
                                std::span<const double> clock_offset = {});

}  // namespace cohort::methods
