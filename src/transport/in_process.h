// Ranks as threads of one process: messages are copied once, into the receiver's mailbox.
//
// Mailboxes have no bound, so send never waits; a rank that sends without end to one that never
// receives uses memory without end. Each rank's transport may be destroyed at any time after its
// own calls have returned; the others see the rank as closed.
#pragma once

#include <memory>
#include <vector>

#include "transport/transport.h"

namespace cohort::transport {

// One transport for each of `size` ranks. Throws ConfigError unless size >= 1.
std::vector<std::unique_ptr<Transport>> make_in_process_group(int size);

}  // namespace cohort::transport
