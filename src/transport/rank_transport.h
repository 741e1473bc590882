// Ranks as threads of several processes: one transport between the processes carries the messages
// of all their ranks.
//
// Ranks of one process put messages straight into each other's mailboxes. A message for a rank of
// another process goes there as one message with who and whom at its end, and one thread a process
// takes what comes and delivers it. When a process is lost, all its ranks are, and no others; a
// rank that closes tells all processes.
//
// Cost of a message between processes: one more copy at the sender, 16 more bytes on the way, and
// the way from thread to thread at the receiver.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/transport.h"

namespace cohort::transport {

// One transport for each rank of this process, which is between->rank(); `counts`: how many each
// process has, at least 1; ranks are numbered from process to process. `names`: what messages call
// the ranks, by rank; "rank 3" where it has no entry. `between` is for these alone: when the last
// of them is destroyed, it is too. All processes call it.
std::vector<std::unique_ptr<Transport>> make_rank_group(std::unique_ptr<Transport> between,
                                                        const std::vector<int>& counts,
                                                        const std::vector<std::string>& names = {});

}  // namespace cohort::transport
