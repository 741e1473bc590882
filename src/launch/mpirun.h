// The command that starts a job's processes: Open MPI's mpirun, or srun within a Slurm allocation.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launch/environment.h"

namespace cohort::launch {

struct LaunchRequest {
  int processes = 1;
  std::string launcher = "auto";            // or mpirun, srun
  std::string hosts_file = {};              // "": this machine, or what Slurm allocated
  std::string agent = {};                   // what reaches another host; "": ssh
  bool oversubscribe = false;               // more processes than slots are meant
  std::string engine = "mpi";               // given to a `train` that names none
  std::filesystem::path program = {};       // absolute, and the same on every host
  std::vector<std::string> arguments = {};  // its own: "train", ...
};

// What of this machine and its environment the command depends on.
struct LaunchHost {
  std::string search_path = {};             // $PATH
  std::vector<std::string> variables = {};  // names of all that are set
  bool root = false;
  bool in_slurm = false;  // within an allocation
  int slots = 1;
};

// `names` as in the environment ("NAME=value", null at the end).
LaunchHost this_host(const Variable& variable, const char* const* names);

struct LaunchCommand {
  std::string launcher;                // "mpirun" or "srun"
  std::vector<std::string> arguments;  // the first is the launcher's path
};

// Checks the request and builds the command. Throws ConfigError, before anything is started, when
// there is no launcher, the hosts file is bad, there are more processes than slots, or the
// arguments ask for an engine that needs no launcher; FileError when the hosts file cannot be read.
//
// Where the slots are not known here (hosts without slots=, an allocation of Slurm) the launcher
// checks them itself.
LaunchCommand launch_command(const LaunchRequest& request, const LaunchHost& host);

// For people to read and for a shell to repeat.
std::string quoted(const std::vector<std::string>& arguments);

}  // namespace cohort::launch
