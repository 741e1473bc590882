// Finds the k elements of largest magnitude, exactly.
//
// A sample of the vector gives a magnitude that a little more than k elements reach; one pass
// collects those, and only they are put in order. When the sample misled, a histogram of all
// magnitudes says which to collect. About one reading of the vector in all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cohort::compressors::detail {

// Keeps its memory from call to call. One thread at a time.
class Selection {
 public:
  // The indices of the `count` elements of largest magnitude, ascending; among equal magnitudes
  // the lower index is taken. 0 <= count <= values.size() < 2^32. NaN counts as the largest. Valid
  // until the next call.
  std::span<const std::uint32_t> largest(std::span<const float> values, std::size_t count);

 private:
  // A magnitude, as bits, that probably at least `count` elements reach.
  std::uint32_t sampled_floor(std::span<const float> values, std::size_t count);
  // Puts the indices of all elements whose magnitude is at least `floor` into candidates_.
  void collect(std::span<const float> values, std::uint32_t floor);
  // Keeps the best `count` of the candidates, all of which are at least `floor`.
  void narrow(std::span<const float> values, std::size_t count, std::uint32_t floor);

  std::vector<std::uint32_t> candidates_;  // memory for them; found_ are valid
  std::size_t found_ = 0;
  std::vector<std::uint32_t> magnitudes_;
};

}  // namespace cohort::compressors::detail
