#include "methods/gossip_exchange.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace cohort::methods {
namespace {

constexpr transport::Tag kGossipTag = 0x676f;
constexpr std::chrono::milliseconds kLookAfter{200};  // whether those awaited are still there
// Who has not been heard of for so long is asked to repeat himself, then again after twice as long:
// late ones answer every question.
constexpr std::chrono::seconds kAskAfter{10};

}  // namespace

GossipExchange::GossipExchange(gossip::GossipNode& node, transport::Transport& transport,
                               GossipExchangeOptions options)
    : node_(node), transport_(transport), options_(std::move(options)) {
  thread_ = std::thread([this] { run(); });
}

GossipExchange::~GossipExchange() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake();
  thread_.join();
}

// The thread waits for messages, so it is sent one.
void GossipExchange::wake() {
  try {
    transport_.send(transport_.rank(), kGossipTag, {}, deadline_in(kLookAfter));
  } catch (const PeerError&) {  // closed: the thread has ended, or will
  }
}

void GossipExchange::begin(std::span<float> x) {
  {
    const std::lock_guard lock(mutex_);
    COHORT_CHECK(!under_way_, "one round at a time");
    node_.begin_round(x);
    under_way_ = true;
    ++begun_;
    give_up_at_ = deadline_in(options_.patience);
    pause_ = kAskAfter;
    ask_at_ = deadline_in(pause_);
  }
  wake();
}

void GossipExchange::lose(Rank rank) {
  {
    const std::lock_guard lock(mutex_);
    node_.on_lost(rank);
  }
  changed_.notify_all();
  wake();
}

void GossipExchange::hear() {
  const std::lock_guard lock(mutex_);
  options_.deaf = false;
}

void GossipExchange::wait(std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [&] { return error_ || (node_.complete() && sent_ == begun_); });
  if (error_) std::rethrow_exception(error_);
}

void GossipExchange::wait() {
  std::unique_lock lock(mutex_);
  wait(lock);
}

void GossipExchange::end(std::span<float> x) {
  std::unique_lock lock(mutex_);
  wait(lock);
  node_.end_round(x);
  under_way_ = false;
}

void GossipExchange::run() {
  try {
    serve();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
  }
  changed_.notify_all();
}

void GossipExchange::serve() {
  while (true) {
    auto message = transport_.receive_any(kGossipTag, deadline_in(kLookAfter));
    std::vector<gossip::GossipNode::Outgoing> frames;
    std::vector<std::string> notes;
    std::uint64_t taken = 0;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      if (!message) {
        look(notes);
      } else if (message->from != transport_.rank() && !options_.deaf) {
        node_.on_frame(message->from, std::move(message->payload));
      }
      frames = node_.take_outgoing();
      taken = begun_;
    }
    if (options_.note) std::for_each(notes.begin(), notes.end(), options_.note);
    send(frames);
    {
      const std::lock_guard lock(mutex_);
      sent_ = taken;
    }
    changed_.notify_all();
  }
}

void GossipExchange::look(std::vector<std::string>& notes) {
  if (!under_way_ || node_.complete()) return;
  for (const Rank rank : node_.awaited()) {
    const std::string why = transport_.gone(rank);
    if (!why.empty()) leave_out(rank, "it " + why, notes);
  }
  const auto now = Clock::now();
  if (now >= give_up_at_ && !node_.complete()) {
    std::vector<std::string> late;
    for (const Rank rank : node_.awaited()) late.push_back(std::to_string(rank));
    throw PeerError(
        "no message of gossip round " + std::to_string(node_.round()) + " came from rank " +
        join(late, ", ") + " in " +
        std::to_string(
            std::chrono::duration_cast<std::chrono::seconds>(options_.patience).count()) +
        " s (--peer-timeout)");
  }
  if (now < ask_at_) return;
  node_.ask();
  pause_ *= 2;
  ask_at_ = deadline_in(pause_);
}

void GossipExchange::send(const std::vector<gossip::GossipNode::Outgoing>& frames) {
  for (const gossip::GossipNode::Outgoing& one : frames) {
    try {
      // One that is back is not the one that this is for.
      if (const std::string why = transport_.gone(one.to); !why.empty())
        throw PeerError("it " + why);
      transport_.send(one.to, kGossipTag, *one.frame, deadline_in(options_.patience));
    } catch (const PeerError& error) {
      if (!transport_.gone(transport_.rank()).empty()) throw;  // this rank is leaving
      std::vector<std::string> notes;
      std::vector<gossip::GossipNode::Outgoing> more;
      {
        const std::lock_guard lock(mutex_);
        leave_out(one.to, error.what(), notes);
        more = node_.take_outgoing();
      }
      changed_.notify_all();
      if (options_.note) std::for_each(notes.begin(), notes.end(), options_.note);
      // A loss makes the node write to its other neighbours.
      send(more);
    }
  }
}

void GossipExchange::leave_out(Rank rank, const std::string& why, std::vector<std::string>& notes) {
  if (!node_.on_lost(rank)) return;
  notes.push_back("rank " + std::to_string(transport_.rank()) + " goes on without rank " +
                  std::to_string(rank) + ", whose weight it keeps: " + why);
}

}  // namespace cohort::methods
