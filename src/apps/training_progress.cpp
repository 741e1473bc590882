#include "apps/training_progress.h"

#include "apps/environment.h"
#include "dialects/translated_progress.h"

namespace cohort {
namespace {

std::unique_ptr<Progress> make_display(const TrainRequest& request, const RunConfig& config,
                                       Step steps_per_epoch, const TotalsSink& totals) {
  if (request.make_progress) return request.make_progress(config, steps_per_epoch);
  if (request.make_worker_progress) return request.make_worker_progress(0, steps_per_epoch);
  if (request.quiet) return make_quiet_progress(stderr);
  return is_terminal(stderr) ? make_progress_bar(stderr, totals)
                             : make_plain_progress(stderr, totals);
}

}  // namespace

std::unique_ptr<Progress> choose_progress(const TrainRequest& request, const RunConfig& config,
                                          Step steps_per_epoch, const TotalsSink& totals) {
  return translated(make_display(request, config, steps_per_epoch, totals), request.flag_names);
}

std::unique_ptr<Progress> worker_progress(const TrainRequest& request, Rank rank,
                                          Step steps_per_epoch) {
  return translated(request.make_worker_progress(rank, steps_per_epoch), request.flag_names);
}

}  // namespace cohort
