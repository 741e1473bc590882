// Runs the ranks of a group as threads of the test.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "core/error.h"
#include "core/types.h"

namespace cohort::transport {

// Long enough that it never ends a healthy test, even under a sanitizer on a busy machine.
inline Deadline far() { return deadline_in(std::chrono::seconds(60)); }

// Calls body(rank) on one thread for each rank and returns, for each, the message of the PeerError
// that ended it, or "". Anything else a rank throws is thrown here.
inline std::vector<std::string> run_ranks(int size, const std::function<void(Rank)>& body) {
  std::vector<std::string> peer_errors(size);
  std::vector<std::exception_ptr> others(size);
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (const PeerError& error) {
        peer_errors[rank] = error.what();
      } catch (...) {
        others[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& other : others) {
    if (other) std::rethrow_exception(other);
  }
  return peer_errors;
}

}  // namespace cohort::transport
