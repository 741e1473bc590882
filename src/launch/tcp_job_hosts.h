// The connections between hosts of a tcp job, each spoken for by one process: collectives, and what
// else the hosts tell each other.
//
// Four times a second each tells all others what its ranks are doing and how many operations they
// have begun; messages quote the last that was heard. A host that is lost, that fails or that
// leaves is told to all others at once, whatever they wait for.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "collectives/collectives.h"
#include "core/activity.h"
#include "launch/process_ranks.h"
#include "transport/tcp.h"

namespace cohort::launch {

struct TcpHosts {
  std::vector<std::string> names = {};  // by host: "ranks 2 and 3 on node5"
  // The ranks that this process speaks for, and what they do.
  std::vector<Rank> ranks = {};
  std::vector<std::shared_ptr<Activity>> activities = {};
  // Asked now and then: why this host has failed, or "". May be empty.
  std::function<std::string()> host_failure = nullptr;
};

// May be used from several threads. To be held by a shared_ptr.
class TcpHostLinks : public std::enable_shared_from_this<TcpHostLinks> {
 public:
  // One transport for each channel, each with one member a host.
  TcpHostLinks(std::array<std::unique_ptr<transport::TcpTransport>, kChannels> lanes,
               TcpHosts hosts);
  TcpHostLinks(const TcpHostLinks&) = delete;
  TcpHostLinks& operator=(const TcpHostLinks&) = delete;
  ~TcpHostLinks() { stop(); }

  // This host's member of a channel, made once each. Keeps this object alive.
  std::unique_ptr<collectives::Collectives> channel(GroupChannel channel);

  std::string failure() const;  // "" while all is well

  // Fails and tells all others. The first reason counts.
  void raise_alarm(const std::string& reason);

  // Says and hears nothing any more.
  void stop();

 private:
  friend class TcpHostChannel;
  struct Heard {
    std::array<std::uint64_t, kChannels> begun{};
    std::string activities = "nothing yet";
  };

  bool fail(const std::string& reason);  // whether it is the first
  void await_failure(std::chrono::milliseconds at_most);
  void watch();
  void tell();
  void hear(const transport::Message& message);
  std::string own_activities() const;
  std::string losses() const;
  // Who was last heard of before it came to an operation.
  std::string late(GroupChannel channel, std::uint64_t operation, const std::string& what) const;

  const TcpHosts hosts_;
  std::array<std::shared_ptr<transport::TcpTransport>, kChannels> lanes_;
  std::array<std::shared_ptr<collectives::Collectives>, kChannels> collectives_;
  std::array<std::atomic<std::uint64_t>, kChannels> begun_{};
  mutable std::mutex mutex_;  // guards the next two
  std::string failure_;
  std::vector<Heard> heard_;  // by host
  std::condition_variable failed_;
  std::atomic<bool> ending_ = false;
  std::mutex stopping_;  // guards the next line
  std::thread watcher_;
};

}  // namespace cohort::launch
