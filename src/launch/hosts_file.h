// The hosts of a job, in the format of Open MPI's --hostfile.
//
// One host a line, then how many processes it takes; a '#' begins a comment:
//     node1 slots=4      # four cores
//     node2 slots=4 max_slots=8
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace cohort::launch {

struct HostEntry {
  std::string name;
  std::optional<int> slots;  // nothing: as many as the host has cores, which only it knows
};

// Throws FileError when the file cannot be read, and ConfigError with path and line number when it
// is not in the format or names no host.
std::vector<HostEntry> read_hosts_file(const std::filesystem::path& path);

// Nothing when a host does not say.
std::optional<int> total_slots(const std::vector<HostEntry>& hosts);

// Cores of this machine that this process may use, as Open MPI counts them: two hardware threads of
// one core are one slot.
int local_slots();

}  // namespace cohort::launch
