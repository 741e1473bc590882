// Finds the bucket size by trying: a few steps with each candidate, then the fastest for good.
//
// Feed it the time of every step; it says when to change. Times must be the same on all ranks (a
// maximum or sum over them), so that all decide alike.
#pragma once

#include <cstdint>
#include <vector>

namespace cohort::methods {

class BucketTuner {
 public:
  // `arena_bytes`: candidates that would give the same buckets are left out.
  explicit BucketTuner(std::int64_t arena_bytes);

  std::int64_t bytes() const { return candidates_[current_]; }
  bool done() const { return done_; }
  // The measured seconds of a step with each candidate, as far as known; 0: not yet.
  const std::vector<double>& seconds() const { return best_; }
  const std::vector<std::int64_t>& candidates() const { return candidates_; }

  // Takes the seconds of a step made with bytes(). True when bytes() has changed.
  bool step(double seconds);

 private:
  static constexpr int kStepsEach = 4;  // the first of which only warms up

  std::vector<std::int64_t> candidates_;
  std::vector<double> best_;  // the fastest step of each: noise only ever adds time
  std::size_t current_ = 0;
  int steps_ = 0;
  bool done_ = false;
};

}  // namespace cohort::methods
