// The upper half of float32: 8 significant bits, the whole range.
//
// Rounded to nearest, ties to even; what would round to infinity becomes the largest finite number.
// Relative error at most 2^-8 for normal numbers, so the error of a vector is at most 2^-16 of its
// squared norm.
//
// Wire: 2 n bytes.
#pragma once

#include "compressors/halves.h"

namespace cohort::compressors {

class Bf16 final : public Halves {
 public:
  Bf16();

  std::string_view name() const override { return "bf16"; }
  double contraction(std::int64_t numel) const override { return numel == 0 ? 1.0 : 1.0 - 0x1p-16; }
};

}  // namespace cohort::compressors
