// What a worker's bytes were for. Everything counted belongs to what the worker is doing at that
// time, so that nothing is counted twice and nothing is lost. But messages between two ranks are
// taken at any time: one of a rank that is a step ahead comes while this one still records or
// evaluates. They are the steps', except where the worker sends messages for something else.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <utility>

#include "core/traffic.h"

namespace cohort::engine {

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
  using Counter = std::function<Traffic()>;
  enum class Messages { kOfSteps, kForPurpose };

  // The worker's bytes so far: of messages between two ranks, and of everything else. Either may be
  // null. Begins with kStart, and with what came before.
  TrafficBook(Counter others, Counter messages)
      : others_{std::move(others), {}}, messages_{std::move(messages), {}} {}

  // From now on bytes are for something else.
  void turn_to(TrafficPurpose purpose, Messages messages = Messages::kOfSteps) {
    close();
    purpose_ = purpose;
    for_messages_ = messages == Messages::kOfSteps ? TrafficPurpose::kSteps : purpose;
  }

  // Since the last take().
  TrafficByPurpose take() {
    close();
    return std::exchange(sums_, {});
  }

  // For as long as it lives, bytes are for this.
  class Scope {
   public:
    Scope(TrafficBook& book, TrafficPurpose purpose, Messages messages = Messages::kOfSteps)
        : book_(book), before_(book.purpose_), messages_before_(book.for_messages_) {
      book.turn_to(purpose, messages);
    }
    ~Scope() {
      book_.turn_to(before_);
      book_.for_messages_ = messages_before_;
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    TrafficBook& book_;
    TrafficPurpose before_;
    TrafficPurpose messages_before_;
  };

 private:
  struct Source {
    Counter counter;
    Traffic seen;

    Traffic take() {
      if (!counter) return {};
      const Traffic now = counter();
      return now - std::exchange(seen, now);
    }
  };

  void close() {
    sums_[static_cast<std::size_t>(purpose_)] += others_.take();
    sums_[static_cast<std::size_t>(for_messages_)] += messages_.take();
  }

  Source others_;
  Source messages_;
  TrafficPurpose purpose_ = TrafficPurpose::kStart;
  TrafficPurpose for_messages_ = TrafficPurpose::kSteps;
  TrafficByPurpose sums_ = {};
};

}  // namespace cohort::engine
