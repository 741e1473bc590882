// IEEE 754 half precision: 11 significant bits, magnitudes from 2^-24 to 65504.
//
// Rounded to nearest, ties to even; what is larger than 65504 becomes 65504. Relative error at most
// 2^-11 from 2^-14 up; below, the absolute error is at most 2^-25, so that a vector of tiny numbers
// decodes to zero: no contraction is promised.
//
// Wire: 2 n bytes.
#pragma once

#include "compressors/halves.h"

namespace cohort::compressors {

namespace detail {
// What processors without the instructions do, one number at a time; the same bits.
std::uint16_t half_of(float value);
float float_of(std::uint16_t half);  // of a finite one
}  // namespace detail

class Fp16 final : public Halves {
 public:
  Fp16();

  std::string_view name() const override { return "fp16"; }
  double contraction(std::int64_t numel) const override { return numel == 0 ? 1.0 : 0.0; }
};

}  // namespace cohort::compressors
