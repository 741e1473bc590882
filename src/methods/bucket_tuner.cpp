#include "methods/bucket_tuner.h"

#include <algorithm>

namespace cohort::methods {

BucketTuner::BucketTuner(std::int64_t arena_bytes) {
  for (const std::int64_t mebibytes : {1, 4, 25, 100, 400}) {
    candidates_.push_back(mebibytes << 20);
    if (candidates_.back() >= arena_bytes) break;
  }
  best_.assign(candidates_.size(), 0);
  done_ = candidates_.size() == 1;
}

bool BucketTuner::step(double seconds) {
  if (done_) return false;
  if (steps_++ > 0) {
    double& best = best_[current_];
    best = best == 0 ? seconds : std::min(best, seconds);
  }
  if (steps_ < kStepsEach) return false;
  steps_ = 0;
  if (current_ + 1 < candidates_.size()) {
    ++current_;
    return true;
  }
  done_ = true;
  const std::size_t last = current_;
  current_ = static_cast<std::size_t>(std::min_element(best_.begin(), best_.end()) - best_.begin());
  return current_ != last;
}

}  // namespace cohort::methods
