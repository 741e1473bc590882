// All ranks are threads of this process: no network, no start-up, gradients summed in place.
#pragma once

#include <memory>

#include "launch/job.h"

namespace cohort::launch {

std::unique_ptr<Job> make_threads_job(const JobOptions& options);

}  // namespace cohort::launch
