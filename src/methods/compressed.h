// One model on all ranks, which send each other compressed moves.
//
//   each rank steps by its own optimizer;   p = (that step) + e;
//   C(p) goes to all;   everybody's parameters move by the mean of them;   e = p - C(p)
//
// The step is the optimizer's own number, not the difference of the parameters before and after,
// which has lost the steps below the parameters' last bit.
//
// ef-sign    C = sign times the mean magnitude       Karimireddy et al. 2019, "Error Feedback Fixes
//                                                    SignSGD"; moves carry the learning rate, as
//                                                    there
// sign-sgd   moves by the learning rate along the mean sign, or the majority's; the sign of 0 is 0;
//            no memory
//                                                    Bernstein et al. 2018, 2019
// dgc        C = top-k, random-k or qsgd             Lin et al. 2018, "Deep Gradient Compression":
//            momentum before compression (correction), clipping by tensor, momentum of what was
//            sent starts anew (masking), ratios that climb. qsgd has no memory
// power-sgd  C = low-rank factors, summed            Vogels et al. 2019; momentum comes before
//                                                    compression here, after it there
//
// With average_every > 1 ranks take so many steps alone, and p is the sum of them.
//
// Cost for P ranks and messages of M bytes: each rank receives (P - 1) M a step; power-sgd sums
// rank x (rows + columns) floats of each matrix. Four vectors as long as the parameters beside
// them, one more where there is a memory, one more for steps alone.
#pragma once

#include <memory>

#include "methods/update_method.h"

namespace cohort::methods {

std::unique_ptr<UpdateMethod> make_ef_sign(const MethodOptions& options);
std::unique_ptr<UpdateMethod> make_sign_sgd(const MethodOptions& options);
std::unique_ptr<UpdateMethod> make_dgc(const MethodOptions& options);
std::unique_ptr<UpdateMethod> make_power_sgd(const MethodOptions& options);

MethodTraits ef_sign_traits();
MethodTraits sign_sgd_traits();
MethodTraits dgc_traits();
MethodTraits power_sgd_traits();

}  // namespace cohort::methods
