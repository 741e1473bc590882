#include "engine/device.h"

#include <ATen/Context.h>
#include <torch/cuda.h>

#include "core/error.h"

namespace cohort::engine {

c10::Device parse_device(const std::string& name) {
  const std::string advice = "--device must be cpu, cuda or cuda:N, got '" + name + "'";
  if (name == "cpu") return {c10::kCPU};
  if (name.rfind("cuda", 0) != 0) throw ConfigError(advice);
  if (!torch::cuda::is_available()) {
    throw ConfigError("--device " + name +
                      ": this libtorch sees no GPU (a CPU build, or no driver); use --device cpu");
  }
  if (name == "cuda") return {c10::kCUDA, 0};
  const std::string digits = name.size() > 5 && name[4] == ':' ? name.substr(5) : "";
  if (digits.empty() || digits.size() > 3 ||
      digits.find_first_not_of("0123456789") != std::string::npos) {
    throw ConfigError(advice);
  }
  const int index = std::stoi(digits);
  const int count = cuda_device_count();
  if (index >= count) {
    throw ConfigError("--device " + name + ": GPUs here: " + std::to_string(count) +
                      ", numbered from 0; take one of them, or --device cpu");
  }
  return {c10::kCUDA, static_cast<c10::DeviceIndex>(index)};
}

int cuda_device_count() { return static_cast<int>(torch::cuda::device_count()); }

void choose_arithmetic(bool tf32) {
  at::globalContext().setBenchmarkCuDNN(true);
  at::globalContext().setAllowTF32CuBLAS(tf32);
  at::globalContext().setAllowTF32CuDNN(tf32);
}

}  // namespace cohort::engine
