// What is said when memory runs out.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>

namespace cohort::runs {

// Whether the error says that memory could not be had, of the host or of a GPU; then what was
// needed, what there is, and which settings to lower.
std::optional<std::string> out_of_memory_text(const std::exception& error);

// Throws ConfigError when this process may not have the buffers that OpenBLAS takes for every
// worker that multiplies matrices: it would ask for them for ever.
void require_blas_memory(std::int64_t workers);

}  // namespace cohort::runs
