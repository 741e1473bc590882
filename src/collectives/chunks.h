// Cuts a vector into nearly equal parts, one for each rank.
#pragma once

#include "core/types.h"

namespace cohort::collectives {

// Part `part` of `parts`; together they cover 0 to numel - 1, sizes differ by one at most.
inline Range chunk_of(std::int64_t numel, int parts, int part) {
  const std::int64_t small = numel / parts;
  const std::int64_t larger = numel % parts;  // so many parts have one element more
  const std::int64_t begin = small * part + (part < larger ? part : larger);
  return {begin, small + (part < larger ? 1 : 0)};
}

}  // namespace cohort::collectives
