// libtorch's random generators, one for each user instead of one for the process.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <cstdint>

namespace cohort::engine {

at::Generator make_generator(std::uint64_t seed, c10::Device device = c10::kCPU);

}  // namespace cohort::engine
