// Workers of a job that know only its servers, started by hand: how many of them share this host.
#pragma once

#include <string>

#include "core/types.h"

namespace cohort::runs {

// Counts this worker among those of the job on this host, until the process ends; returns how many
// there are now, itself among them. `job` is the same for all of them. Of this user's alone; 1 when
// no folder can be had to count in.
int workers_on_this_host(const std::string& job, Rank rank);

}  // namespace cohort::runs
