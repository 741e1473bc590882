// Runs an event loop so that short answers come fast.
//
// A thread that sleeps takes some 50 us to wake, several times what a small message takes between
// two processes of a host. So the loop looks for more to do for kAttention after the last event,
// leaving the core to anybody else each time (without that, two that look on one core would hold
// each other up), and only then sleeps.
#pragma once

#include <chrono>

namespace boost::asio {
class io_context;
}

namespace cohort {

inline constexpr std::chrono::microseconds kAttention{300};

// Returns when the io_context is stopped or has nothing left to do, like its run().
void run_attentively(boost::asio::io_context& io);

}  // namespace cohort
