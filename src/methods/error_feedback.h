// Remembers what a group's codec left out of this rank's vector and adds it to the next one.
//
//   p = move + e;   sent = C(p);   e = p - sent        (Seide et al. 2014; Karimireddy et al. 2019)
//
// so that over time everything is sent: the sum of what was sent plus the memory is the sum of the
// moves, up to rounding. The memory starts at zero and is part of the codec's state.
#pragma once

#include <cstddef>
#include <memory>

#include "methods/group_codec.h"

namespace cohort::methods {

// `codec` with a memory around it, for vectors of `numel` values.
std::unique_ptr<GroupCodec> feed_errors_back(std::unique_ptr<GroupCodec> codec, std::size_t numel);

}  // namespace cohort::methods
