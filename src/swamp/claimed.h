// The two servers of the original (ElasticDL's "swamp", 2018), which believe what workers claim.
//
// Both: candidates are handled in the order of their arrival. One is admitted if its claim, the
// loss of one batch, is below the best model's claim; then a "double check": its mean loss over
// samples freshly drawn from the training set must be below what the best model's own check had
// given. An accepted model brings its own claim as the next one's hurdle. Where more wait than
// PolicyOptions::queue, the newest arrival is dropped.
//
// They differ in what a pull gives; the score told is the claim of that model in both, and neither
// asks what the puller has already.
//
//   fifo    the behaviour behind the published curves. After every handled candidate, accepted or
//           not, the best model is put at the end of a line (as soon as there is one), and a pull
//           takes the foremost entry out: workers are given the past, one after another. Nothing
//           when the line is empty. A line of PolicyOptions::replay entries, or of replay_models
//           different models, is full: nothing is appended. The line does not survive a restart.
//   latest  the later original. A pull gives the one best model, also to whom has it. One lucky
//           batch is a hurdle that nobody passes any more: the server freezes.
//
// Candidates that are not finite are refused at the door and handled by nobody.
#pragma once

#include <memory>

#include "swamp/best_model.h"

namespace cohort::swamp {

std::unique_ptr<BestModel> make_fifo(const PolicyOptions& options, BestRecord best);
std::unique_ptr<BestModel> make_latest(const PolicyOptions& options, BestRecord best);

}  // namespace cohort::swamp
