#include "network/event_loop.h"

#include <sched.h>

#include <boost/asio/io_context.hpp>

#include "core/clock.h"

namespace cohort::network {

void run_with_spin(boost::asio::io_context& io) {
  Clock::time_point last = Clock::now();
  while (!io.stopped()) {
    if (io.poll() > 0) {
      last = Clock::now();
    } else if (Clock::now() - last < kAttention) {
      ::sched_yield();
    } else {
      if (io.run_one() == 0) return;
      last = Clock::now();
    }
  }
}

}  // namespace cohort::network
