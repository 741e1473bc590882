#include "engine/host_memory.h"

#include <cstdlib>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <climits>

namespace cohort::engine {

void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the largest value glibc takes
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
#endif
}

}  // namespace cohort::engine
