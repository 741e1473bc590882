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

namespace cohort::network {

// A small model's step takes about as long, so that its server is awake for the next push; longer
// and shorter were no better there (docs/performance.md). The price is a core that looks busy so
// much longer.
inline constexpr std::chrono::microseconds kAttention{300};

// Returns when the io_context is stopped or has nothing left to do, like its run().
void run_with_spin(boost::asio::io_context& io);

}  // namespace cohort::network
