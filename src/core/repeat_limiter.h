// Keeps a line that comes again and again from filling a log.
//
// Lines are of one kind when they differ in numbers alone. As many as a job of many workers may
// have to say at once are said; of more in the same minute, how many there were.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "core/clock.h"

namespace cohort {

class RepeatLimiter {
 public:
  // The line as it is to be said now; nothing when it is left out. Any thread.
  std::optional<std::string> admit(const std::string& line, Clock::time_point now);

 private:
  struct Seen {
    Clock::time_point since = {};  // the first of this minute
    int said = 0;                  // in it
    std::uint64_t left_out = 0;    // since the last that was said
  };

  std::mutex mutex_;  // guards what follows
  std::map<std::string, Seen> seen_;
};

// `say` for those lines alone that the limiter lets through. Copies share one limiter.
std::function<void(const std::string&)> limit_repeats(std::function<void(const std::string&)> say);

}  // namespace cohort
