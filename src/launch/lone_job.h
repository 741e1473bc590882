// One worker of several that know nothing of each other but a server in common: each its own
// process, started and ended on its own.
#pragma once

#include <memory>

#include "launch/job.h"

namespace cohort::launch {

// 0 <= rank < size; `host_size` of them share this host, as far as is known.
std::unique_ptr<Job> make_lone_job(Rank rank, int size, int host_size = 1);

}  // namespace cohort::launch
