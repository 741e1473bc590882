// What every kernel launch, and every call of the CUDA runtime, is followed by.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "core/error.h"

namespace cohort::kernels {

inline void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  throw RunError(std::string("the GPU refused ") + what + ": " + cudaGetErrorString(result));
}

inline void check_launch(const char* what) { check(cudaGetLastError(), what); }

}  // namespace cohort::kernels
