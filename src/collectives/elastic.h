// Collectives among those who are left: a rank that is lost is left out instead of ending the
// others, and one that comes back is let in. membership/group.h says by which rules; this carries
// it over the messages of a transport on which a lost rank is gone() and may be back, with a tag of
// its own and a thread of its own, so that a rank answers the others while its owner computes.
//
// In an operation every rank but the leader sends one message and gets one back; so for P ranks and
// S bytes: 2 (P - 1) messages, 2 (P - 1) S bytes through one rank (all_gather: P (P - 1) S from
// it). That suits questions between steps and a model now and then, not gradients. The operations
// of collectives.h, with these differences:
//
//   all_reduce   sums over those present
//   all_gather   nothing of those who are not
//   a lost rank  is no PeerError but no longer present(), and gone() in the transport as soon as
//                the leader says so; one that leaves for a reason ends the others with that reason,
//                as everywhere. A rank that the others may go on without gets a CutOffError.
//
// A rank comes back in four steps: introduce_to() the leader, then it reaches the others, then
// enter() asks to be let in; the others learn of it in the same agree(), after which the leader
// says welcome() with all that the newcomer has to know. From then on it takes part.
//
// Its methods are called from one thread; leave() from any.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "collectives/collectives.h"
#include "membership/group.h"
#include "transport/transport.h"

namespace cohort::collectives {

inline constexpr transport::Tag kElasticTag = 0x6c76;

// All but `joined` are called from a thread of the collectives' own.
struct ElasticOptions {
  // Of the leader: what a rank that comes back is told, which said `text` of itself.
  std::function<std::string(Rank rank, const std::string& text)> introduce = nullptr;
  // Of all, when it is let in.
  std::function<void(Rank rank, const std::string& text)> joined = nullptr;
  // Whether the process of a rank that is gone has ended, for certain.
  std::function<bool(Rank rank)> has_ended = nullptr;
  // Of the leader, at each agreement: those who come back should find it.
  std::function<void()> leads = nullptr;
};

class ElasticCollectives final : public Collectives, private membership::ElasticGroup::Ports {
 public:
  // The transport outlives it. `entered`: this rank will enter() a group that is under way, which
  // that one leads.
  ElasticCollectives(transport::Transport& transport, ElasticOptions options,
                     std::optional<Rank> entered = std::nullopt);
  ~ElasticCollectives() override;

  // As of the last operation, the same on all.
  int present() const override;
  bool is_present(Rank rank) const { return present_[rank]; }
  Rank leader() const { return answered_by_; }

  void all_reduce(std::span<float> values, Deadline deadline) override;
  std::vector<Bytes> all_gather(std::span<const std::byte> own, Deadline deadline) override;
  void broadcast(std::span<std::byte> bytes, Rank root, Deadline deadline) override;
  void barrier(Deadline deadline) override;
  void leave(const std::string& reason) override;
  Traffic traffic() const override { return {sent_.load(), received_.load()}; }

  struct Agreement {
    bool any = false;               // has said yes
    std::int64_t first = 0;         // the number of the leader
    std::vector<Rank> joined = {};  // are present from now on; none when any has said yes
  };
  Agreement agree(bool mine, std::int64_t number, Deadline deadline);

  // Of the leader, after an agreement, to each that joined.
  void welcome(Rank rank, std::span<const std::byte> entry, Deadline deadline);

  // Waits to be let in; returns what the leader has to say. Throws CutOffError, PeerError.
  Bytes enter(Deadline deadline);

 private:
  struct Outgoing {
    Rank to = 0;
    Bytes message = {};
    bool last = false;  // this rank goes on without that one
  };
  using Lock = std::unique_lock<std::mutex>;

  void send(Rank to, Bytes message) override;
  void give_up(Rank rank, Bytes last_word) override;
  bool readmit(Rank rank) override;
  std::optional<bool> has_ended(Rank rank) override;
  std::string introduce(Rank rank, const std::string& text) override;
  void leads() override;

  Bytes operate(std::span<const std::byte> own, membership::ElasticGroup::Combine combine,
                Deadline deadline);
  template <class Done>
  void wait_for(Lock& lock, Deadline deadline, Done done);
  void take_answer(Lock& lock);
  void serve();
  void hear(const transport::Message& message);
  void look_for_lost();
  void flush(Lock& lock);
  void carry(const Outgoing& one, Deadline deadline);

  transport::Transport& transport_;
  const ElasticOptions options_;
  std::atomic<std::uint64_t> sent_ = 0;
  std::atomic<std::uint64_t> received_ = 0;

  // Of the owner's thread, as of the last answer that it took:
  Rank answered_by_;
  std::vector<bool> present_;
  std::vector<Rank> joined_;

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  membership::ElasticGroup group_;
  std::deque<Outgoing> outgoing_;
  Deadline send_until_ = {};  // of the operation under way
  bool flushing_ = false;     // one thread sends, in the order of the queue
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all of the above
};

// Of a rank that is back: tells the leader who it is and learns what it should know, and who is
// there. Throws CutOffError, PeerError.
std::string introduce_to(transport::Transport& transport, Rank leader, const std::string& own,
                         std::vector<bool>& present, Deadline deadline);

}  // namespace cohort::collectives
