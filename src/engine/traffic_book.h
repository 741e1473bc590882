// What a worker's bytes were for. Everything counted belongs to what the worker is doing at that
// time, so that nothing is counted twice and nothing is lost.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <utility>

#include "core/traffic.h"

namespace cohort {

enum class TrafficPurpose : std::size_t {
  kSteps,         // what the method exchanges while training: the bytes of step records
  kStart,         // meeting, first weights, restored state
  kCoordination,  // agreeing when to stop, gathering records
  kEvaluation,
  kCheckpoint,
  kFinish,  // what a method does after the last step
};
inline constexpr std::array<const char*, 6> kTrafficPurposes = {
    "steps", "start", "coordination", "evaluation", "checkpoint", "finish"};

using TrafficByPurpose = std::array<Traffic, kTrafficPurposes.size()>;

class TrafficBook {
 public:
  // `counter`: the worker's bytes so far; may be null. Begins with kStart, and with what came
  // before.
  explicit TrafficBook(std::function<Traffic()> counter) : counter_(std::move(counter)) {}

  // From now on bytes are for something else. Returns what they were for until now.
  TrafficPurpose turn_to(TrafficPurpose purpose) {
    close();
    return std::exchange(purpose_, purpose);
  }

  // Since the last take().
  TrafficByPurpose take() {
    close();
    return std::exchange(sums_, {});
  }

  // For as long as it lives, bytes are for this.
  class Scope {
   public:
    Scope(TrafficBook& book, TrafficPurpose purpose)
        : book_(book), before_(book.turn_to(purpose)) {}
    ~Scope() { book_.turn_to(before_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    TrafficBook& book_;
    TrafficPurpose before_;
  };

 private:
  void close() {
    if (!counter_) return;
    const Traffic now = counter_();
    sums_[static_cast<std::size_t>(purpose_)] += now - std::exchange(seen_, now);
  }

  std::function<Traffic()> counter_;
  TrafficPurpose purpose_ = TrafficPurpose::kStart;
  Traffic seen_;
  TrafficByPurpose sums_ = {};
};

}  // namespace cohort
