// How a group agrees on the mean of its ranks' vectors when each sends less than its whole vector.
//
// One object per rank; all ranks call exchange() together with vectors of the same length.
#pragma once

#include <memory>
#include <span>

#include "methods/replica.h"
#include "methods/state_visitor.h"
#include "methods/update_method.h"

namespace cohort::methods {

// Of dgc: the shares dropped climb to the final one.
struct SparsityWarmup {
  double epochs = 0;
  std::vector<double> ratios = {};
};

class GroupCodec {
 public:
  virtual ~GroupCodec() = default;

  // `move` is this rank's vector. Fills `sent` with what the others learn of it, and `mean` with
  // what the group makes of all of them: the same bits on all ranks.
  virtual void exchange(std::span<const float> move, const StepInfo& info, std::span<float> sent,
                        std::span<float> mean) = 0;

  virtual void visit_state(StateVisitor& visitor) = 0;
};

// Compressed vectors go to everybody, who takes their mean.
std::unique_ptr<GroupCodec> make_mean_codec(const MethodOptions& options,
                                            const std::vector<Range>& tensors,
                                            const std::string& compressor,
                                            const SparsityWarmup& warmup = {});

// Signs go to everybody; the mean of them, or with `majority` theirs, times the learning rate.
// The sign of 0 is 0: `sent` has -1, 0 and 1.
std::unique_ptr<GroupCodec> make_vote_codec(const MethodOptions& options, bool majority);

// Factors of the matrices, of rank at most `rank`, are summed; vectors whole.
std::unique_ptr<GroupCodec> make_power_codec(const MethodOptions& options, std::int64_t rank,
                                             const Replica& replica,
                                             const std::vector<Range>& tensors);

}  // namespace cohort::methods
