#include "launch/job.h"
#ifdef COHORT_WITH_MPI
#include "launch/mpi_job.h"
#endif
#ifdef COHORT_WITH_NCCL
#include "launch/nccl_job.h"
#endif
#include "launch/tcp_job.h"
#include "launch/threads_job.h"

namespace cohort::launch {

const EngineRegistry& engines() {
  static const EngineRegistry registry(
      "engine",
      {
          {"threads", "replicas as threads of one process", make_threads_job},
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

void check_engine(const std::string& name) {
  struct Absent {
    const char* name;
    const char* text;
  };
  static constexpr Absent kAbsent[] = {
#ifndef COHORT_WITH_MPI
      {"mpi",
       "was made without MPI: use --engine tcp, or install Open MPI's headers (Debian, Ubuntu: apt "
       "install libopenmpi-dev) and build again"},
#endif
#ifndef COHORT_WITH_NCCL
      {"nccl",
       "was made without NCCL, for the CPU: leave --engine out, or build again with a libtorch for "
       "CUDA, and NCCL"},
#endif
      {"", ""}};
  for (const Absent& absent : kAbsent) {
    if (!name.empty() && name == absent.name) {
      throw ConfigError("--engine " + name + " is not in this build, which " + absent.text);
    }
  }
  engines().find(name);
}

}  // namespace cohort::launch
