// Random streams that depend on nothing but what they are for.
//
// Every stream is derived from (seed, purpose, numbers): the same seed gives the same stream on
// every machine, for every number of workers, and after a resume, without any state to save.
// The distributions are written here because those of <random> differ between libraries.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include "core/types.h"

namespace cohort {

// A 64-bit key from a seed, a purpose ("order", "augment", ...) and numbers such as rank or epoch.
std::uint64_t derive_seed(Seed seed, std::string_view purpose,
                          std::initializer_list<std::uint64_t> numbers = {});

// xoshiro256++ 1.0 (Blackman, Vigna 2019), seeded by SplitMix64. Satisfies
// UniformRandomBitGenerator. Not thread-safe; make one per use.
class RandomStream {
 public:
  using result_type = std::uint64_t;  // NOLINT(readability-identifier-naming): the standard's

  explicit RandomStream(std::uint64_t key);
  RandomStream(Seed seed, std::string_view purpose,
               std::initializer_list<std::uint64_t> numbers = {})
      : RandomStream(derive_seed(seed, purpose, numbers)) {}

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }
  result_type operator()();

  double uniform();                          // [0, 1)
  double uniform(double low, double high);   // [low, high)
  std::uint64_t below(std::uint64_t bound);  // 0 to bound - 1, unbiased; bound > 0
  double normal();                           // mean 0, variance 1
  double gamma(double shape);                // scale 1; shape > 0

 private:
  std::uint64_t state_[4];
};

// Fisher-Yates.
template <class T>
void shuffle(std::span<T> values, RandomStream& random) {
  for (std::size_t i = values.size(); i > 1; --i) {
    using std::swap;
    swap(values[i - 1], values[random.below(i)]);
  }
}

}  // namespace cohort
