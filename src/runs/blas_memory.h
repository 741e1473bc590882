// The memory that OpenBLAS takes for itself. Without libtorch or exceptions: used before main().
#pragma once

#include <sys/mman.h>
#include <sys/resource.h>

#include <cstddef>

namespace cohort::runs {

// For each thread that multiplies matrices, of OpenBLAS 0.3.21 on x86-64. When it cannot have it,
// it asks again for ever.
inline constexpr std::size_t kBlasBuffer = std::size_t{128} << 20;

// Whether this process may have so many more bytes of addresses (ulimit -v). Takes no memory.
inline bool can_map(std::size_t bytes) {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return true;
  void* place =
      ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) return false;
  ::munmap(place, bytes);
  return true;
}

}  // namespace cohort::runs
