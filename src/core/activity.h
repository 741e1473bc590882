// What a rank is doing, for those who wait for it.
//
// Written by the rank, read by anybody at any time, also from another process: it may lie in
// shared memory, and holds nothing but lock-free atomics.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "core/types.h"

namespace cohort {

enum class Phase : std::uint32_t {
  kStarting,    // building its model, reading data
  kLoading,     // waiting for a batch
  kComputing,   // forward and backward
  kExchanging,  // waiting for other ranks
  kUpdating,
  kEvaluating,
  kSaving,  // a checkpoint
  kEnded,
};

const char* phase_name(Phase phase);  // "computing gradients"

class Activity {
 public:
  void set(Step step, Phase phase) {
    step_.store(step, std::memory_order_relaxed);
    phase_.store(static_cast<std::uint32_t>(phase), std::memory_order_relaxed);
  }
  void set(Phase phase) {
    phase_.store(static_cast<std::uint32_t>(phase), std::memory_order_relaxed);
  }

  Step step() const { return step_.load(std::memory_order_relaxed); }
  Phase phase() const { return static_cast<Phase>(phase_.load(std::memory_order_relaxed)); }

  std::string text() const;  // "at step 17, computing gradients"

 private:
  std::atomic<Step> step_ = 0;
  std::atomic<std::uint32_t> phase_ = 0;
  static_assert(std::atomic<Step>::is_always_lock_free);
};

}  // namespace cohort
