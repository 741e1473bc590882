// Reads the memory of another process of this user, where the system allows it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace cohort::collectives {

// Copies `bytes` bytes at `address` of process `pid` to `out`. False when the process is gone, the
// address is not its own, or the system forbids it; `out` then holds anything.
bool read_peer_memory(pid_t pid, std::uint64_t address, void* out, std::size_t bytes);

}  // namespace cohort::collectives
