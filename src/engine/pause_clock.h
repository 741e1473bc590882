// How long some worker of this process has evaluated or saved while others, which are not asked
// anything then, wait for it in their next exchange: not time of their training.
//
// Used by all workers of a process.
#pragma once

#include <mutex>

#include "core/clock.h"

namespace cohort::engine {

class PauseClock {
 public:
  // While there is one of these, the clock runs.
  class Scope {
   public:
    explicit Scope(PauseClock* clock) : clock_(clock) {
      if (clock_ != nullptr) clock_->add(1);
    }
    ~Scope() {
      if (clock_ != nullptr) clock_->add(-1);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    PauseClock* clock_;  // null: nobody is interested
  };

  double seconds() const {
    const std::lock_guard lock(mutex_);
    return before_ + (scopes_ > 0 ? seconds_between(since_, Clock::now()) : 0);
  }

 private:
  void add(int scopes) {
    const std::lock_guard lock(mutex_);
    const Clock::time_point now = Clock::now();
    if (scopes_ > 0) before_ += seconds_between(since_, now);
    scopes_ += scopes;
    since_ = now;
  }

  mutable std::mutex mutex_;  // guards what follows
  double before_ = 0;
  int scopes_ = 0;
  Clock::time_point since_ = {};
};

}  // namespace cohort::engine
