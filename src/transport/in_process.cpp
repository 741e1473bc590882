#include "transport/in_process.h"

#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/error.h"

namespace cohort {
namespace {

// What has arrived for one rank. Every mailbox keeps its own note of who is gone, so that a waiting
// rank needs one lock and one condition only.
class Mailbox {
 public:
  explicit Mailbox(int size) : gone_(size, false) {}

  // False when the owner or the sender has closed.
  bool put(Rank owner, Message message) {
    {
      const std::lock_guard lock(mutex_);
      if (gone_[owner] || gone_[message.from]) return false;
      const std::uint64_t key = key_of(message.from, message.tag);
      queues_[key].push_back({next_arrival_++, std::move(message.payload)});
    }
    // All, not one: waiters want different messages, and the one woken might not want this.
    arrived_.notify_all();
    return true;
  }

  enum class Outcome { kMessage, kDeadline, kPeerGone, kClosed };

  Outcome take(Rank owner, Message& wanted, Deadline deadline) {
    std::unique_lock lock(mutex_);
    while (true) {
      if (gone_[owner]) return Outcome::kClosed;
      if (pop(wanted)) return Outcome::kMessage;
      if (gone_[wanted.from]) return Outcome::kPeerGone;
      if (Clock::now() >= deadline) return Outcome::kDeadline;
      arrived_.wait_until(lock, deadline);
    }
  }

  Outcome take_any(Rank owner, Message& wanted, Deadline deadline) {
    std::unique_lock lock(mutex_);
    while (true) {
      if (gone_[owner]) return Outcome::kClosed;
      if (pop_earliest(wanted)) return Outcome::kMessage;
      if (Clock::now() >= deadline) return Outcome::kDeadline;
      arrived_.wait_until(lock, deadline);
    }
  }

  void note_gone(Rank rank) {
    {
      const std::lock_guard lock(mutex_);
      gone_[rank] = true;
    }
    arrived_.notify_all();
  }

  void clear() {
    const std::lock_guard lock(mutex_);
    queues_.clear();
  }

 private:
  struct Envelope {
    std::uint64_t arrival;
    Bytes payload;
  };
  using Queue = std::deque<Envelope>;

  static std::uint64_t key_of(Rank from, Tag tag) {
    return static_cast<std::uint64_t>(from) << 32 | tag;
  }

  bool pop(Message& wanted) {
    const auto found = queues_.find(key_of(wanted.from, wanted.tag));
    if (found == queues_.end()) return false;
    wanted.payload = std::move(found->second.front().payload);
    found->second.pop_front();
    // Empty queues go: tags may be made anew for every step.
    if (found->second.empty()) queues_.erase(found);
    return true;
  }

  bool pop_earliest(Message& wanted) {
    std::uint64_t earliest = next_arrival_;
    for (Rank from = 0; from < static_cast<Rank>(gone_.size()); ++from) {
      const auto found = queues_.find(key_of(from, wanted.tag));
      if (found == queues_.end() || found->second.front().arrival >= earliest) continue;
      earliest = found->second.front().arrival;
      wanted.from = from;
    }
    return earliest != next_arrival_ && pop(wanted);
  }

  std::mutex mutex_;  // guards everything below
  std::condition_variable arrived_;
  std::unordered_map<std::uint64_t, Queue> queues_;  // none is empty
  std::uint64_t next_arrival_ = 0;
  std::vector<bool> gone_;  // by rank
};

struct Group {
  explicit Group(int size) {
    for (int rank = 0; rank < size; ++rank) mailboxes.push_back(std::make_unique<Mailbox>(size));
  }
  std::vector<std::unique_ptr<Mailbox>> mailboxes;  // by owner
};

class InProcessTransport final : public Transport {
 public:
  InProcessTransport(std::shared_ptr<Group> group, Rank rank)
      : group_(std::move(group)), rank_(rank) {}
  InProcessTransport(const InProcessTransport&) = delete;
  InProcessTransport& operator=(const InProcessTransport&) = delete;
  ~InProcessTransport() override {
    shut();
    own().clear();
  }

  Rank rank() const override { return rank_; }
  int size() const override { return static_cast<int>(group_->mailboxes.size()); }

  void send(Rank to, Tag tag, std::span<const std::byte> payload, Deadline) override {
    check_rank(to);
    Message message{rank_, tag, Bytes(payload.begin(), payload.end())};
    if (!group_->mailboxes[to]->put(to, std::move(message))) {
      throw PeerError(label() + "cannot send to rank " + std::to_string(to) +
                      ": one of the two has closed");
    }
  }

  Message receive(Rank from, Tag tag, Deadline deadline) override {
    check_rank(from);
    const auto start = Clock::now();
    Message message{from, tag, {}};
    const std::string peer = "rank " + std::to_string(from);
    switch (own().take(rank_, message, deadline)) {
      case Mailbox::Outcome::kMessage:
        return message;
      case Mailbox::Outcome::kPeerGone:
        throw PeerError(label() + peer + " has closed; no message with tag " + std::to_string(tag) +
                        " can come");
      case Mailbox::Outcome::kDeadline: {
        char waited[32];
        std::snprintf(waited, sizeof waited, "%.3g s", seconds_between(start, Clock::now()));
        throw PeerError(label() + "no message with tag " + std::to_string(tag) + " from " + peer +
                        " within " + waited);
      }
      case Mailbox::Outcome::kClosed:
        break;
    }
    throw_closed("while waiting for " + peer);
  }

  std::optional<Message> receive_any(Tag tag, Deadline deadline) override {
    Message message{0, tag, {}};
    switch (own().take_any(rank_, message, deadline)) {
      case Mailbox::Outcome::kMessage:
        return message;
      case Mailbox::Outcome::kClosed:
        throw_closed("while waiting for any rank");
      default:
        return std::nullopt;
    }
  }

  void close() override { shut(); }

 private:
  // Own mailbox first: once a peer knows, no call of this rank can succeed any more.
  void shut() {
    own().note_gone(rank_);
    for (const auto& mailbox : group_->mailboxes) mailbox->note_gone(rank_);
  }

  Mailbox& own() { return *group_->mailboxes[rank_]; }
  std::string label() const { return "rank " + std::to_string(rank_) + ": "; }

  void check_rank(Rank rank) const {
    COHORT_CHECK(rank >= 0 && rank < size(),
                 "no rank " + std::to_string(rank) + " in a group of " + std::to_string(size()));
  }

  [[noreturn]] void throw_closed(const std::string& when) const {
    throw PeerError(label() + "this rank's transport was closed " + when);
  }

  std::shared_ptr<Group> group_;
  Rank rank_;
};

}  // namespace

std::vector<std::unique_ptr<Transport>> make_in_process_group(int size) {
  if (size < 1) {
    throw ConfigError("a group needs at least 1 rank, not " + std::to_string(size));
  }
  const auto group = std::make_shared<Group>(size);
  std::vector<std::unique_ptr<Transport>> members;
  members.reserve(size);
  for (Rank rank = 0; rank < size; ++rank) {
    members.push_back(std::make_unique<InProcessTransport>(group, rank));
  }
  return members;
}

}  // namespace cohort
