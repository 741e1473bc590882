#include "methods/device_timer.h"

#include <utility>

namespace cohort::methods {

void DeviceTimer::end() {
  if (!begun_) return;
  spans_.push_back({*begun_, DeviceMoment::now(device_)});
  begun_.reset();
  while (!spans_.empty() && spans_.front().end.passed()) add_oldest();
}

double DeviceTimer::take() {
  while (!spans_.empty()) {
    spans_.front().end.wait();
    add_oldest();
  }
  return std::exchange(seconds_, 0.0);
}

void DeviceTimer::add_oldest() {
  seconds_ += spans_.front().end.seconds_since(spans_.front().begin);
  spans_.pop_front();
}

}  // namespace cohort::methods
