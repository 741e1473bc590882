// Methods whose workers take several steps alone and then make one step of what came of them all:
//
//   from the common x each rank takes average_every steps of its own optimizer
//   d = x - mean of the ranks' parameters        the averaged change, in the place of a gradient
//   outer(x, u, d)                               u: the outer momentum, which begins as 0
//   all ranks go on from x
//
// A method is its outer step. Ranks have the same x and u, bit for bit, because they sum the same
// numbers; parameters differ within a round, and so does the optimizer's state. Alone it is local
// training.
//
// Cost for P ranks and S bytes of parameters: 2 S (P - 1) / P bytes sent and received every
// average_every steps, three vectors as long as the parameters.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "methods/update_method.h"

namespace cohort::methods {

struct OuterState {
  at::Tensor x;         // what all ranks went on from, and will
  at::Tensor momentum;  // of the outer steps
};

struct LocalRoundsOptions {
  // `change` is d, `lr` the rate of the round's last step. Changes the state's elements in place.
  std::function<void(const OuterState& state, const at::Tensor& change, double lr)> outer;
  Step average_every;  // of a round, where the user names none
  // What a round leaves of the optimizer's own state.
  enum class Slots { kKept, kAveraged, kZeroed } slots = Slots::kKept;
};

std::unique_ptr<UpdateMethod> make_local_rounds(const MethodOptions& options,
                                                LocalRoundsOptions rounds);

// Of such a method with settings of its own. `average_every`: as in its options.
MethodTraits local_rounds_traits(std::int64_t average_every, std::vector<config::ConfigField> own);

}  // namespace cohort::methods
