// What every kernel launch is followed by.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "core/error.h"

namespace cohort::kernels {

inline void check_launch(const char* what) {
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return;
  throw RunError(std::string("the GPU refused ") + what + ": " + cudaGetErrorString(error));
}

}  // namespace cohort::kernels
