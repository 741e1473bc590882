// Adds up how long a device works on some of what it is given, on the device's own clock and
// without waiting for it.
#pragma once

#include <deque>
#include <optional>

#include "methods/device_work.h"

namespace cohort::methods {

class DeviceTimer {
 public:
  explicit DeviceTimer(c10::Device device) : device_(device) {}

  void begin() { begun_ = DeviceMoment::now(device_); }
  void end();  // of a span that begin() began; without one, nothing

  // The seconds of all spans since the last call. Waits for their end.
  double take();

 private:
  struct Span {
    DeviceMoment begin;
    DeviceMoment end;
  };

  void add_oldest();

  c10::Device device_;
  std::optional<DeviceMoment> begun_;
  std::deque<Span> spans_;  // that may not have ended yet
  double seconds_ = 0;      // of those that have
};

}  // namespace cohort::methods
