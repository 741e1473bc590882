// Carries the frames of a gossip node over a transport, on a thread of its own: a round goes on
// while the caller computes, and neighbours are answered between rounds too.
//
// The node is touched by this object alone, under one lock. Used from one thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "gossip/node.h"
#include "transport/transport.h"

namespace cohort::methods {

struct GossipExchangeOptions {
  std::chrono::nanoseconds patience = std::chrono::minutes(10);  // with a rank that is late
  std::function<void(const std::string&)> note = nullptr;  // a line for people, from any thread
  bool deaf = false;  // until hear(): what comes is for a predecessor
};

class GossipExchange {
 public:
  // Both outlive it, and the node has started.
  GossipExchange(gossip::GossipNode& node, transport::Transport& transport,
                 GossipExchangeOptions options);
  ~GossipExchange();  // a round under way is given up
  GossipExchange(const GossipExchange&) = delete;
  GossipExchange& operator=(const GossipExchange&) = delete;

  // Begins a round of the node, whose messages then travel.
  void begin(std::span<float> x);
  // Waits until they are there and the own one is sent. Throws PeerError when a neighbour stays
  // away for too long, and what else came up. A neighbour that is lost is left out, and said.
  void wait();
  // The same, and ends the round.
  void end(std::span<float> x);

  // The rank is lost, whether or not that has been seen.
  void lose(Rank rank);

  // From now on frames are listened to, where that was put off.
  void hear();

  // Calls use(node) when no round is under way.
  template <class Use>
  void between_rounds(Use&& use) {
    const std::lock_guard lock(mutex_);
    use(node_);
  }

 private:
  void wait(std::unique_lock<std::mutex>& lock);
  void run();
  void serve();
  void wake();
  void look(std::vector<std::string>& notes);
  void send(const std::vector<gossip::GossipNode::Outgoing>& frames);
  void leave_out(Rank rank, const std::string& why, std::vector<std::string>& notes);

  gossip::GossipNode& node_;
  transport::Transport& transport_;
  GossipExchangeOptions options_;

  std::mutex mutex_;  // guards the node and all below
  std::condition_variable changed_;
  bool under_way_ = false;
  std::uint64_t begun_ = 0;  // rounds
  std::uint64_t sent_ = 0;   // rounds whose own messages are sent
  bool stopping_ = false;
  std::exception_ptr error_;
  Deadline give_up_at_ = Deadline::max();
  Deadline ask_at_ = Deadline::max();
  std::chrono::nanoseconds pause_{};  // before it is asked again
  std::thread thread_;                // last: it uses all of the above
};

}  // namespace cohort::methods
