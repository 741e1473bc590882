// What libtorch, CUDA's libraries and our kernels say when a GPU fails, in words for people.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cohort::runs {

// What was asked for and what there is, where `error` says that a GPU's memory could not be had.
std::optional<std::string> gpu_memory_text(std::string_view error);

// What happened, where `error` is one after which a GPU computes nothing more for this process.
std::optional<std::string> lost_gpu_text(std::string_view error);

}  // namespace cohort::runs
