// A vector whose memory begins at a multiple of 64 bytes, a cache line and the longest SIMD
// register: memory is copied up to twice as fast between places that are equally far from one. A
// long one asks the system for large pages, through which everything passes half as fast again.
#pragma once

#include <cstddef>
#include <vector>

namespace cohort {

// Throws std::bad_alloc. `bytes` to give it back are those it was asked for with.
void* allocate_aligned(std::size_t bytes);
void release_aligned(void* memory, std::size_t bytes) noexcept;

template <class T>
struct AlignedAllocator {
  using value_type = T;  // NOLINT(readability-identifier-naming): the standard's

  AlignedAllocator() = default;
  template <class Other>
  explicit AlignedAllocator(const AlignedAllocator<Other>&) {}

  T* allocate(std::size_t count) { return static_cast<T*>(allocate_aligned(count * sizeof(T))); }
  void deallocate(T* memory, std::size_t count) { release_aligned(memory, count * sizeof(T)); }

  friend bool operator==(AlignedAllocator, AlignedAllocator) { return true; }
};

template <class T>
using AlignedVector = std::vector<T, AlignedAllocator<T>>;

}  // namespace cohort
