// A server that never trusts a claim.
//
// Every candidate is examined on one fixed validation set and compared with the best model sample
// by sample: with d_i = loss_i(candidate) - loss_i(best), it is accepted when
//     mean(d) + hysteresis * standard error of mean(d) < 0,
// so that differences which the choice of the samples explains change nothing. Pairing takes out
// what makes samples easy or hard for both: the standard error is that of the difference, several
// times smaller than that of either mean. Hysteresis 0 takes any improvement. The first candidate
// with a finite mean is always accepted.
//
// Claims decide only about the order: the best claim is examined first, of equal ones the oldest.
// A worker has at most one candidate waiting: a newer offer takes the place of the older one
// (kReplaced), whatever the two claim, since the newer model has learnt from more batches and a
// claim is one batch's luck. When PolicyOptions::queue wait, the worst claim among them and the
// newcomer is dropped (kDropped). All that is waiting at the end is still examined.
//
// A pull gives the best model, with its mean loss on the validation set as the score, to whom has
// an older version; nothing to whom has this one.
#pragma once

#include <memory>

#include "swamp/best_model.h"

namespace cohort::swamp {

std::unique_ptr<BestModel> make_validated(const PolicyOptions& options, BestRecord best);

}  // namespace cohort::swamp
