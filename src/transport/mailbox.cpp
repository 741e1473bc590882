#include "transport/mailbox.h"

#include <cstdio>
#include <utility>

#include "core/error.h"

namespace cohort::transport {
namespace {

std::uint64_t key_of(Rank from, Tag tag) { return static_cast<std::uint64_t>(from) << 32 | tag; }

std::string seconds_since(Clock::time_point start) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", seconds_between(start, Clock::now()));
  return text;
}

}  // namespace

Mailbox::Mailbox(Rank owner, int size, std::vector<std::string> names)
    : owner_(owner), names_(std::move(names)), gone_(size), back_(size, false) {}

std::string Mailbox::name(Rank rank) const {
  const auto index = static_cast<std::size_t>(rank);
  return index < names_.size() ? names_[index] : "rank " + std::to_string(rank);
}

bool Mailbox::put(Message message) {
  {
    const std::lock_guard lock(mutex_);
    const bool may_send = gone_[message.from].empty() || back_[message.from];
    if (!gone_[owner_].empty() || !may_send) return false;
    const std::uint64_t key = key_of(message.from, message.tag);
    queues_[key].push_back({next_arrival_++, std::move(message.payload)});
  }
  // All, not one: waiters want different messages, and the one woken might not want this.
  arrived_.notify_all();
  return true;
}

Message Mailbox::receive(Rank from, Tag tag, Deadline deadline) {
  const auto start = Clock::now();
  Message wanted{from, tag, {}};
  std::unique_lock lock(mutex_);
  while (true) {
    if (!gone_[owner_].empty()) {
      throw PeerError(label() + "this rank's transport was closed while waiting for " + name(from));
    }
    if (pop(wanted)) return wanted;
    if (!gone_[from].empty()) {
      throw PeerError(label() + name(from) + " " + gone_[from] + "; no message with tag " +
                      std::to_string(tag) + " can come");
    }
    if (Clock::now() >= deadline) {
      throw PeerError(label() + "no message with tag " + std::to_string(tag) + " from " +
                      name(from) + " within " + seconds_since(start));
    }
    arrived_.wait_until(lock, deadline);
  }
}

std::optional<Message> Mailbox::receive_any(Tag tag, Deadline deadline) {
  Message wanted{0, tag, {}};
  std::unique_lock lock(mutex_);
  while (true) {
    if (!gone_[owner_].empty()) {
      throw PeerError(label() + "this rank's transport was closed while waiting for any rank");
    }
    if (pop_earliest(wanted)) return wanted;
    if (Clock::now() >= deadline) return std::nullopt;
    arrived_.wait_until(lock, deadline);
  }
}

void Mailbox::note_gone(Rank rank, const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (gone_[rank].empty()) gone_[rank] = reason;
    back_[rank] = false;
  }
  arrived_.notify_all();
}

void Mailbox::note_returned(Rank rank) {
  const std::lock_guard lock(mutex_);
  if (gone_[rank].empty()) return;  // the first that came
  back_[rank] = true;
  std::erase_if(queues_,
                [&](const auto& queue) { return static_cast<Rank>(queue.first >> 32) == rank; });
}

void Mailbox::readmit(Rank rank) {
  const std::lock_guard lock(mutex_);
  if (!back_[rank]) return;
  back_[rank] = false;
  gone_[rank].clear();
}

bool Mailbox::can_send_to(Rank rank) const {
  const std::lock_guard lock(mutex_);
  return gone_[rank].empty() || back_[rank];
}

std::string Mailbox::gone(Rank rank) const {
  const std::lock_guard lock(mutex_);
  return gone_[rank];
}

void Mailbox::clear() {
  const std::lock_guard lock(mutex_);
  queues_.clear();
}

bool Mailbox::pop(Message& wanted) {
  const auto found = queues_.find(key_of(wanted.from, wanted.tag));
  if (found == queues_.end()) return false;
  wanted.payload = std::move(found->second.front().payload);
  found->second.pop_front();
  // Empty queues go: tags may be made anew for every step.
  if (found->second.empty()) queues_.erase(found);
  return true;
}

bool Mailbox::pop_earliest(Message& wanted) {
  std::uint64_t earliest = next_arrival_;
  for (Rank from = 0; from < static_cast<Rank>(gone_.size()); ++from) {
    const auto found = queues_.find(key_of(from, wanted.tag));
    if (found == queues_.end() || found->second.front().arrival >= earliest) continue;
    earliest = found->second.front().arrival;
    wanted.from = from;
  }
  return earliest != next_arrival_ && pop(wanted);
}

}  // namespace cohort::transport
