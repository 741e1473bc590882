// What the environment of this process says of its job, where flags leave it open.
#pragma once

#include <string>

#include "network/credentials.h"

namespace cohort::launch {

// How many processes a launcher (mpirun, srun, torchrun) started together with this one; 1 when
// none did.
int launched_processes();

// The engine when the user left it to us: for a process that torchrun started among others tcp,
// that another launcher started mpi; else threads.
std::string default_engine();

// `job` if not empty, else $COHORT_JOB, else "cohort"; and whether one of the first two named it.
std::string find_job_name(const std::string& job);
bool is_job_named(const std::string& job);

// The job's secrets as flags and the environment give them: COHORT_TOKEN, COHORT_TLS_DIR.
network::Credentials find_credentials(const std::string& token_file, const std::string& tls_dir,
                                      bool insecure);

// A folder of this user alone for sockets, made if need be.
std::string runtime_folder();

// What places measured figures: where they were measured.
struct HostDescription {
  std::string name;
  std::string system;
  std::string cpu;
  unsigned cores = 0;
  std::string openblas_coretype;
};
HostDescription describe_this_host();

}  // namespace cohort::launch
