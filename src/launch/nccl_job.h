// All ranks are threads of this process with a GPU each; gradients are summed by NCCL in the GPUs'
// memory, everything else goes through the process's own.
#pragma once

#include <memory>

#include "launch/job.h"

namespace cohort::launch {

// Rank r has GPU r; 0 workers: one for each GPU. Throws ConfigError when there is no GPU, or fewer
// than workers.
std::unique_ptr<Job> make_nccl_job(const JobOptions& options);

}  // namespace cohort::launch
