// Where a launcher put this process: its place among the processes of a job, told by variables.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace cohort::launch {

inline constexpr std::string_view kEngineFlag = "--engine";

// What std::getenv answers: null where a variable is not set.
using Variable = std::function<const char*(const char*)>;
const char* own_variable(const char* name);  // of this process

struct Place {
  std::string source;  // "Open MPI", "PMI", "Slurm" or "torchrun"
  int rank = 0;        // of this process among `size`
  int size = 1;
  int local_rank = 0;               // among the `local_size` of this host
  int local_size = 0;               // 0: the launcher does not say
  std::string master_address = {};  // MASTER_ADDR and MASTER_PORT: torchrun's meeting point, or a
                                    // script's; "" and 0 where they are not set
  int master_port = 0;
};

// The place that the first of these launchers tells: Open MPI (OMPI_COMM_WORLD_RANK, ...), PMI
// (PMI_RANK, ..., as MPICH's and Intel's mpiexec set them), Slurm's srun (SLURM_PROCID, ...),
// torchrun (RANK, WORLD_SIZE, ...). Nothing when the process was started by hand. A launcher counts
// when it tells both rank and size; what else it leaves out has the defaults above.
//
// Slurm sets its variables for every process of an allocation, also for a batch script that stands
// for no task; only a job step (SLURM_STEP_ID) of more than one task counts.
//
// Throws ConfigError that names the variable whose value is no number or out of range.
std::optional<Place> detect_place(const Variable& variable);

// `place` with MASTER_ADDR and MASTER_PORT, where they are set.
Place with_meeting_point(Place place, const Variable& variable);

}  // namespace cohort::launch
