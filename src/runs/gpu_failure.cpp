#include "runs/gpu_failure.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>

namespace cohort::runs {
namespace {

bool holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Of errors that CUDA or one of its libraries is at fault for.
bool is_of_cuda(std::string_view error) {
  constexpr std::array<std::string_view, 6> kSources = {
      "CUDA error", "CUDA says", "CUDNN_STATUS_", "CUBLAS_STATUS_", "NCCL", "the GPU refused"};
  return std::any_of(kSources.begin(), kSources.end(),
                     [&](std::string_view source) { return holds(error, source); });
}

// What follows it is advice to programmers, and where it was noticed.
std::string_view first_line(std::string_view error) { return error.substr(0, error.find('\n')); }

// What stands between the first `before` and the next `after`; empty where they do not.
std::string_view between(std::string_view text, std::string_view before, std::string_view after) {
  const std::size_t begin = text.find(before);
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin + before.size());
  const std::size_t end = text.find(after);
  return end == std::string_view::npos ? std::string_view{} : text.substr(0, end);
}

}  // namespace

std::optional<std::string> gpu_memory_text(std::string_view thrown) {
  const std::string_view error = first_line(thrown);
  // "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 139.81 GiB of
  // which 1.50 GiB is free. ..."; before libtorch 2.1 "... (GPU 0; 139.81 GiB total capacity;
  // 137.00 GiB already allocated; 1.50 GiB free; ..."
  if (holds(error, "CUDA out of memory")) {
    const std::string_view asked = between(error, "Tried to allocate ", "iB");
    const bool newer = holds(error, "total capacity of ");
    const std::string_view gpu = between(error, newer ? ". GPU " : "(GPU ", newer ? " " : ";");
    const std::string_view all = newer ? between(error, "total capacity of ", " of which")
                                       : between(error, "; ", " total capacity");
    const std::string_view free = newer ? between(error, "of which ", " is free")
                                        : between(error, "already allocated; ", " free");
    if (asked.empty() || gpu.empty() || all.empty() || free.empty()) return std::string(error);
    return fmt::format(
        "out of memory: {}iB more were needed in one piece on GPU {}, which has {}, of which {} "
        "are "
        "free",
        asked, gpu, all, free);
  }
  const bool refused = is_of_cuda(error) && holds(error, "out of memory");
  if (!refused && !holds(error, "_STATUS_ALLOC_FAILED")) return std::nullopt;
  return fmt::format("out of memory on the GPU: {}", error);
}

std::optional<std::string> lost_gpu_text(std::string_view thrown) {
  const std::string_view error = first_line(thrown);
  if (!is_of_cuda(error)) return std::nullopt;
  // As cudaGetErrorString() words those that stay, and libraries the first that they meet.
  constexpr std::array<std::string_view, 19> kLasting = {
      "illegal memory access",
      "unspecified launch failure",
      "launch timed out",
      "uncorrectable ECC error",
      "uncorrectable NVLink error",
      "hardware stack error",
      "illegal instruction",
      "misaligned address",
      "operation not supported on global/shared address space",
      "invalid program counter",
      "device-side assert",
      "Invalid access of peer GPU memory",
      "context is destroyed",
      "busy or unavailable",
      "no CUDA-capable device",
      "GPU is lost",
      "unknown error",
      "CUDNN_STATUS_EXECUTION_FAILED",
      "CUBLAS_STATUS_EXECUTION_FAILED"};
  const bool lasting = std::any_of(kLasting.begin(), kLasting.end(),
                                   [&](std::string_view text) { return holds(error, text); });
  if (!lasting) return std::nullopt;
  return fmt::format("{}; this process can compute nothing more on that GPU", error);
}

}  // namespace cohort::runs
