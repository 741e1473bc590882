#include "collectives/peer_memory.h"

#include <sys/uio.h>

#include <cerrno>

namespace cohort::collectives {

bool read_peer_memory(pid_t pid, std::uint64_t address, void* out, std::size_t bytes) {
  auto* to = static_cast<std::byte*>(out);
  while (bytes > 0) {
    const iovec local{to, bytes};
    const iovec remote{reinterpret_cast<void*>(address), bytes};
    const ssize_t copied = process_vm_readv(pid, &local, 1, &remote, 1, 0);
    if (copied < 0 && errno == EINTR) continue;
    if (copied <= 0) return false;
    to += copied;
    address += static_cast<std::uint64_t>(copied);
    bytes -= static_cast<std::size_t>(copied);
  }
  return true;
}

}  // namespace cohort::collectives
