// The device a run computes on.
#pragma once

#include <c10/core/Device.h>

#include <string>

namespace cohort {

// "cpu", "cuda" or "cuda:N". Throws ConfigError when libtorch cannot compute there.
c10::Device parse_device(const std::string& name);

int cuda_device_count();

// Waits until the device has finished what it was given, so that a clock read next is true.
void synchronize(c10::Device device);

}  // namespace cohort
