// The device a run computes on.
#pragma once

#include <c10/core/Device.h>

#include <string>

namespace cohort::engine {

// "cpu", "cuda" or "cuda:N". Throws ConfigError when libtorch cannot compute there.
c10::Device parse_device(const std::string& name);

int cuda_device_count();

// How all GPUs of this process compute from now on: with the fastest convolutions that they find by
// measuring, and, if `tf32`, with products of float32 rounded to 10 bits.
void choose_arithmetic(bool tf32);

}  // namespace cohort::engine
