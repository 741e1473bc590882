#include "transport/rank_transport.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <utility>

#include "core/error.h"
#include "transport/mailbox.h"

namespace cohort::transport {
namespace {

constexpr Tag kCarried = 0;  // the only one between processes
constexpr std::chrono::milliseconds kLookEvery{20};
constexpr std::chrono::seconds kNoticeTime{1};

enum class Kind : std::uint32_t { kMessage, kClosed };

// What follows the payload, where taking it off moves nothing.
struct Label {
  Rank from = 0;
  Rank to = 0;
  Tag tag = 0;
  Kind kind = Kind::kMessage;
};
static_assert(sizeof(Label) == 16);

Bytes labelled(std::span<const std::byte> payload, const Label& label) {
  Bytes bytes;
  bytes.reserve(payload.size() + sizeof label);
  bytes.assign(payload.begin(), payload.end());
  const auto tail = std::as_bytes(std::span(&label, 1));
  bytes.insert(bytes.end(), tail.begin(), tail.end());
  return bytes;
}

// What the ranks of one process share.
class Hub {
 public:
  Hub(std::unique_ptr<Transport> between, const std::vector<int>& counts,
      const std::vector<std::string>& names)
      : between_(std::move(between)), noted_(counts.size(), false) {
    for (std::size_t process = 0; process < counts.size(); ++process) {
      first_.push_back(static_cast<Rank>(process_of_.size()));
      process_of_.insert(process_of_.end(), counts[process], static_cast<int>(process));
    }
    first_.push_back(size());
    for (Rank rank = own_begin(); rank < own_end(); ++rank) {
      mailboxes_.push_back(std::make_unique<Mailbox>(rank, size(), names));
    }
    pump_ = std::thread([this] { pump(); });
  }
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;
  ~Hub() {
    between_->close();  // which ends the pump's wait
    pump_.join();
  }

  int size() const { return static_cast<int>(process_of_.size()); }
  Rank own_begin() const { return first_[between_->rank()]; }
  Rank own_end() const { return first_[between_->rank() + 1]; }
  bool is_here(Rank rank) const { return rank >= own_begin() && rank < own_end(); }
  Mailbox& mailbox(Rank rank) { return *mailboxes_[rank - own_begin()]; }

  void carry(const Label& label, std::span<const std::byte> payload, Deadline deadline) {
    between_->send(process_of_[label.to], kCarried, labelled(payload, label), deadline);
  }

  std::string process_gone(Rank rank) const {
    return is_here(rank) ? "" : between_->gone(process_of_[rank]);
  }

  void note_closed(Rank rank) {
    for (const auto& mailbox : mailboxes_) mailbox->note_gone(rank);
  }

  void tell_closed(Rank rank) {
    for (int process = 0; process < between_->size(); ++process) {
      if (process == between_->rank()) continue;
      try {
        carry({rank, first_[process], 0, Kind::kClosed}, {}, deadline_in(kNoticeTime));
      } catch (const PeerError&) {  // it has gone before
      }
    }
  }

 private:
  void pump() {
    Deadline look_at = Clock::now();
    try {
      while (true) {
        if (Clock::now() >= look_at) {
          for (int process = 0; process < between_->size(); ++process) look_for(process);
          look_at = deadline_in(kLookEvery);
        }
        if (auto message = between_->receive_any(kCarried, look_at)) deliver(std::move(*message));
      }
    } catch (const PeerError&) {
      // The transport was closed: the last rank is going.
    }
  }

  void look_for(int process) {
    if (process == between_->rank() || noted_[process]) return;
    const std::string why = between_->gone(process);
    if (why.empty()) return;
    try {
      while (!noted_[process]) deliver(between_->receive(process, kCarried, Deadline::min()));
    } catch (const PeerError&) {  // that was all it had sent
    }
    note_lost(process, why);
  }

  void note_lost(int process, const std::string& why) {
    noted_[process] = true;
    for (Rank rank = first_[process]; rank < first_[process + 1]; ++rank) {
      for (const auto& mailbox : mailboxes_) mailbox->note_gone(rank, why);
    }
  }

  void deliver(Message message) {
    Label label;
    if (message.payload.size() >= sizeof label) {
      const std::size_t length = message.payload.size() - sizeof label;
      std::memcpy(&label, message.payload.data() + length, sizeof label);
      const bool knows_itself =
          label.from >= first_[message.from] && label.from < first_[message.from + 1];
      if (knows_itself && label.kind == Kind::kClosed) return note_closed(label.from);
      if (knows_itself && label.kind == Kind::kMessage && is_here(label.to)) {
        message.payload.resize(length);
        mailbox(label.to).put({label.from, label.tag, std::move(message.payload)});
        return;
      }
    }
    note_lost(message.from, "is lost: it sent a message that makes no sense here");
  }

  const std::unique_ptr<Transport> between_;
  std::vector<int> process_of_;                      // by rank
  std::vector<Rank> first_;                          // by process, and the end
  std::vector<std::unique_ptr<Mailbox>> mailboxes_;  // of the ranks that live here
  std::vector<bool> noted_;                          // by process: gone; of the pump alone
  std::thread pump_;
};

class RankTransport final : public Transport {
 public:
  RankTransport(std::shared_ptr<Hub> hub, Rank rank)
      : Transport(rank, hub->size()), hub_(std::move(hub)), own_(hub_->mailbox(rank)) {}
  ~RankTransport() override {
    shut();
    own_.clear();
  }

  void send(Rank to, Tag tag, std::span<const std::byte> payload, Deadline deadline) override {
    check_rank(to);
    for (const Rank one : {to, rank()}) {
      if (const std::string why = own_.gone(one); !why.empty()) {
        cannot_send(to, own_.name(one) + " " + why);
      }
    }
    if (hub_->is_here(to)) {
      const bool taken =
          hub_->mailbox(to).put({rank(), tag, Bytes(payload.begin(), payload.end())});
      if (!taken) cannot_send(to, "one of the two has closed");
      return;
    }
    try {
      hub_->carry({rank(), to, tag}, payload, deadline);
    } catch (const PeerError& error) {
      cannot_send(to, error.what());
    }
  }

  Message receive(Rank from, Tag tag, Deadline deadline) override {
    check_rank(from);
    return own_.receive(from, tag, deadline);
  }

  std::optional<Message> receive_any(Tag tag, Deadline deadline) override {
    return own_.receive_any(tag, deadline);
  }

  std::string gone(Rank peer) const override {
    check_rank(peer);
    const std::string noted = own_.gone(peer);
    return noted.empty() ? hub_->process_gone(peer) : noted;  // the pump may not have looked yet
  }

  // Of its process alone: the others there may go on.
  void give_up(Rank peer) override {
    check_rank(peer);
    own_.note_gone(peer, kGivenUp);
  }

  void close() override { shut(); }

 private:
  // Own mailbox first: once a peer knows, no call of this rank can succeed any more.
  void shut() {
    if (closed_.exchange(true)) return;
    own_.note_gone(rank());
    hub_->note_closed(rank());
    hub_->tell_closed(rank());
  }

  [[noreturn]] void cannot_send(Rank to, const std::string& why) const {
    throw PeerError(own_.name(rank()) + ": cannot send to " + own_.name(to) + ": " + why);
  }

  const std::shared_ptr<Hub> hub_;
  Mailbox& own_;
  std::atomic<bool> closed_ = false;
};

}  // namespace

std::vector<std::unique_ptr<Transport>> make_rank_group(std::unique_ptr<Transport> between,
                                                        const std::vector<int>& counts,
                                                        const std::vector<std::string>& names) {
  COHORT_CHECK(between && static_cast<int>(counts.size()) == between->size() &&
                   std::all_of(counts.begin(), counts.end(), [](int count) { return count > 0; }),
               "every process has ranks");
  const auto hub = std::make_shared<Hub>(std::move(between), counts, names);
  std::vector<std::unique_ptr<Transport>> members;
  for (Rank rank = hub->own_begin(); rank < hub->own_end(); ++rank) {
    members.push_back(std::make_unique<RankTransport>(hub, rank));
  }
  return members;
}

}  // namespace cohort::transport
