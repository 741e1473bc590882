#include "methods/gossip_exchange.h"

#include <algorithm>
#include <utility>

#include "core/clock.h"
#include "core/error.h"
#include "core/text.h"

namespace cohort {
namespace {

constexpr Tag kGossipTag = 0x676f;
constexpr std::chrono::milliseconds kLookAfter{200};  // whether those awaited are still there
// Who has not been heard of for so long is asked to repeat himself, then again after twice as long:
// late ones answer every question.
constexpr std::chrono::seconds kAskAfter{10};

}  // namespace

GossipExchange::GossipExchange(GossipNode& node, Transport& transport,
                               GossipExchangeOptions options)
    : node_(node), transport_(transport), options_(std::move(options)) {
  if (options_.thread) thread_ = std::thread([this] { run(); });
}

GossipExchange::~GossipExchange() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void GossipExchange::begin() {
  {
    const std::lock_guard lock(mutex_);
    COHORT_CHECK(!under_way_, "one round at a time");
    under_way_ = true;
  }
  changed_.notify_all();
}

void GossipExchange::wait() {
  std::unique_lock lock(mutex_);
  if (!options_.thread && under_way_) {
    lock.unlock();
    carry();
    lock.lock();
    under_way_ = false;
    return;
  }
  changed_.wait(lock, [&] { return !under_way_; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void GossipExchange::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return under_way_ || stopping_; });
    if (stopping_) return;
    lock.unlock();
    std::exception_ptr error;
    try {
      carry();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    under_way_ = false;
    error_ = error;
    changed_.notify_all();
  }
}

void GossipExchange::carry() {
  const Deadline deadline = deadline_in(options_.patience);
  std::chrono::nanoseconds pause = kAskAfter;
  Deadline ask_at = deadline_in(pause);
  send_all();
  while (!node_.complete()) {
    auto message = transport_.receive_any(kGossipTag, std::min(deadline, deadline_in(kLookAfter)));
    if (message) {
      node_.on_frame(message->from, std::move(message->payload));
    } else if (Clock::now() < deadline) {
      leave_out_the_gone();
      if (Clock::now() < ask_at) continue;
      node_.ask();
      pause *= 2;
      ask_at = deadline_in(pause);
    } else {
      std::vector<std::string> late;
      for (const Rank rank : node_.awaited()) late.push_back(std::to_string(rank));
      throw PeerError(
          "no message of gossip round " + std::to_string(node_.round()) + " came from rank " +
          join(late, ", ") + " in " +
          std::to_string(
              std::chrono::duration_cast<std::chrono::seconds>(options_.patience).count()) +
          " s (--peer-timeout)");
    }
    send_all();
  }
}

void GossipExchange::send_all() {
  // A loss makes the node write to its other neighbours: until nothing is left.
  for (auto outgoing = node_.take_outgoing(); !outgoing.empty(); outgoing = node_.take_outgoing()) {
    for (const GossipNode::Outgoing& one : outgoing) {
      try {
        transport_.send(one.to, kGossipTag, *one.frame, deadline_in(options_.patience));
      } catch (const PeerError& error) {
        leave_out(one.to, error.what());
      }
    }
  }
}

void GossipExchange::leave_out_the_gone() {
  for (const Rank rank : node_.awaited()) {
    const std::string why = transport_.gone(rank);
    if (!why.empty()) leave_out(rank, "it " + why);
  }
  send_all();
}

void GossipExchange::leave_out(Rank rank, const std::string& why) {
  node_.on_lost(rank);
  if (!options_.note) return;
  options_.note("going on without rank " + std::to_string(rank) +
                ", whose weight its neighbours keep: " + why);
}

}  // namespace cohort
