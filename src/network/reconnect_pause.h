// How long to wait before connecting again to a peer that was there: not at all after a link that
// lasted, and longer and longer after links that ended as soon as they began.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "core/clock.h"

namespace cohort::network {

class ReconnectPause {
 public:
  void linked(Clock::time_point now) { linked_ = now; }
  bool returning() const { return linked_.has_value(); }  // it has been there

  std::chrono::milliseconds next(Clock::time_point now) {
    using std::chrono::milliseconds;
    if (!linked_ || now - *linked_ >= kLasts) {
      pause_ = milliseconds(0);
    } else {
      pause_ = std::clamp(2 * pause_, kFirst, kLongest);
    }
    return pause_;
  }

 private:
  static constexpr std::chrono::seconds kLasts{2};
  static constexpr std::chrono::milliseconds kFirst{10};
  static constexpr std::chrono::milliseconds kLongest{1000};

  std::optional<Clock::time_point> linked_;
  std::chrono::milliseconds pause_{0};
};

}  // namespace cohort::network
