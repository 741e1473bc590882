// The signs of a vector, to be counted: -1, 0 or 1 for each element.
//
// A bit for each element, 1 if it is negative, element i in bit i % 8 of byte i / 8. If there are
// zeros, which need not be, as many bits again follow: 1 if the element is zero. So a vector costs
// one bit an element, or two. Unlike `sign`, which has one magnitude for all elements and takes 0
// for positive: what is fed back the next time corrects that, but here nothing is.
#pragma once

#include <cstddef>
#include <span>

#include "core/types.h"

namespace cohort::compressors {

// Replaces the content of `wire`. Of an element that is not a number the vote is 0.
void pack_votes(std::span<const float> values, Bytes& wire);

// Adds -1, 0 or 1 to every sum. Throws PeerError, and adds nothing, when the bytes cannot have come
// from pack_votes() of a vector of that length.
void add_votes(std::span<const std::byte> wire, std::span<float> sums);

}  // namespace cohort::compressors
