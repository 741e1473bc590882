#include "launch/job.h"
#ifdef COHORT_WITH_MPI
#include "launch/mpi_job.h"
#endif
#ifdef COHORT_WITH_NCCL
#include "launch/nccl_job.h"
#endif
#include "launch/processes_job.h"
#include "launch/tcp_job.h"
#include "launch/threads_job.h"

namespace cohort {

const EngineRegistry& engines() {
  static const EngineRegistry registry(
      "engine",
      {
          {"threads", "replicas as threads of one process", make_threads_job},
          {"processes", "processes of one host that torchrun started, without MPI",
           make_processes_job},
          {"tcp", "processes on one host or many, without MPI", make_tcp_job},
#ifdef COHORT_WITH_MPI
          {"mpi", "processes started by mpirun or srun, on one host or many", make_mpi_job},
#endif
#ifdef COHORT_WITH_NCCL
          {"nccl", "one replica a GPU, gradients summed by NCCL", make_nccl_job},
#endif
      });
  return registry;
}

}  // namespace cohort
