#include "launch/job.h"
#include "launch/threads_job.h"
#ifdef COHORT_WITH_MPI
#include "launch/mpi_job.h"
#endif

namespace cohort {

const EngineRegistry& engines() {
  static const EngineRegistry registry(
      "engine", {
                    {"threads", "replicas as threads of one process", make_threads_job},
#ifdef COHORT_WITH_MPI
                    {"mpi", "processes that mpirun or srun started, each with one rank or more",
                     [](const JobOptions& options) { return make_mpi_job(options); }},
#endif
                });
  return registry;
}

}  // namespace cohort
