// Carries the frames of a gossip node over a transport, one round after another.
//
// With a thread of its own a round goes on while the caller computes; then only that thread touches
// the node until wait() returns. Used from one thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "gossip/node.h"
#include "transport/transport.h"

namespace cohort {

struct GossipExchangeOptions {
  std::chrono::nanoseconds patience = std::chrono::minutes(10);  // with a rank that is late
  bool thread = true;
  std::function<void(const std::string&)> note = nullptr;  // a line for people, from any thread
};

class GossipExchange {
 public:
  // Both outlive it.
  GossipExchange(GossipNode& node, Transport& transport, GossipExchangeOptions options);
  ~GossipExchange();  // a round under way is given up: close the transport first
  GossipExchange(const GossipExchange&) = delete;
  GossipExchange& operator=(const GossipExchange&) = delete;

  // The node has begun a round.
  void begin();
  // Returns when the node is complete. Throws PeerError when a neighbour stays away for too long,
  // and what else came up. A neighbour that is lost is left out, and said.
  void wait();

 private:
  void run();
  void carry();
  void send_all();
  void leave_out_the_gone();
  void leave_out(Rank rank, const std::string& why);

  GossipNode& node_;
  Transport& transport_;
  GossipExchangeOptions options_;

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  bool under_way_ = false;
  bool stopping_ = false;
  std::exception_ptr error_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace cohort
