// What a person sees of a run, as the command that trains asks for it.
#pragma once

#include <memory>

#include "apps/training.h"
#include "config/run_config.h"
#include "engine/progress.h"
#include "metrics/run_totals.h"

namespace cohort {

// Of the worker that speaks for its process: the dialect's own display, or the usual one, which
// shows `totals`. Notes name the dialect's flags. `request` and `totals` outlive it.
std::unique_ptr<Progress> choose_progress(const TrainRequest& request, const RunConfig& config,
                                          Step steps_per_epoch, const TotalsSink& totals);

// Of another worker, where the dialect shows each: request.make_worker_progress is set. Likewise.
std::unique_ptr<Progress> worker_progress(const TrainRequest& request, Rank rank,
                                          Step steps_per_epoch);

}  // namespace cohort
