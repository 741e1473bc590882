#include "core/aligned_vector.h"

#include <sys/mman.h>

#include <new>

namespace cohort {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kLargePage = std::size_t{2} << 20;
constexpr std::size_t kLong = 2 * kLargePage;

std::align_val_t alignment_of(std::size_t bytes) {
  return std::align_val_t{bytes >= kLong ? kLargePage : kLine};
}

}  // namespace

void* allocate_aligned(std::size_t bytes) {
  void* memory = ::operator new(bytes, alignment_of(bytes));
  // Only whole pages: the last one may be shared. A system that has none to give says no.
  if (bytes >= kLong) ::madvise(memory, bytes / kLargePage * kLargePage, MADV_HUGEPAGE);
  return memory;
}

void release_aligned(void* memory, std::size_t bytes) noexcept {
  ::operator delete(memory, alignment_of(bytes));
}

}  // namespace cohort
