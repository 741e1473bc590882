// Collectives among those who are left: a rank that is lost is left out instead of ending the
// others, and one that comes back is let in.
//
// One leads: rank 0, and when it is lost the lowest of those left, until that is lost. In an
// operation every other rank sends it one message and gets one back, with who took part; so for P
// ranks and S bytes: 2 (P - 1) messages, 2 (P - 1) S bytes through one rank (all_gather: P (P - 1)
// S from it). That suits questions between steps and a model now and then, not gradients. The
// operations of collectives.h, with these differences:
//
//   all_reduce   sums over those present
//   all_gather   nothing of those who are not
//   a lost rank  is no PeerError but no longer present(); one that leaves for a reason ends the
//                others with that reason, as everywhere
//
// Who led may have answered some ranks and not others before it was lost: who leads next hears from
// all how far they are, with the last answer they got, so that all get the same answers. leader()
// is who made the last one.
//
// Perhaps it is this rank that was lost. A side goes on when it has more than half of those who
// were present at the last answer, or half and who led, not counting those whose processes have
// ended for certain; and the same of the answer before, since the last one may have reached nobody.
// So of two sides, at most one gets more than one answer further. Otherwise it gets a CutOffError,
// and so does a rank that others say they have given up.
//
// A rank comes back in four steps: introduce_to() who leads, then it reaches the others, then
// enter() asks to be let in; the others learn of it in the same agree(), after which who leads says
// welcome() with all that the newcomer has to know. From then on it takes part.
//
// Over the messages of a transport on which a lost rank is gone() and may be back; with a tag of
// its own. One thread; leave() from any.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "collectives/collectives.h"
#include "transport/transport.h"

namespace cohort::collectives {

enum class LivingKind : std::uint32_t;  // elastic_messages.h
struct LivingMessage;

struct ElasticOptions {
  // Of who leads: what a rank that comes back is told, which said `text` of itself.
  std::function<std::string(Rank rank, const std::string& text)> introduce = nullptr;
  // Of all, when it is let in.
  std::function<void(Rank rank, const std::string& text)> joined = nullptr;
  // Whether the process of a rank that is gone has ended, for certain.
  std::function<bool(Rank rank)> has_ended = nullptr;
  // Of who leads, at each agreement: those who come back should find it.
  std::function<void()> leads = nullptr;
};

class ElasticCollectives final : public Collectives {
 public:
  // The transport outlives it, but for the destructor. `entered`: this rank will enter() a group
  // that is under way, which that one leads.
  ElasticCollectives(transport::Transport& transport, ElasticOptions options,
                     std::optional<Rank> entered = std::nullopt);

  int present() const override;
  bool is_present(Rank rank) const { return present_[rank]; }
  Rank leader() const { return answered_by_; }  // the same on all after the same operation

  void all_reduce(std::span<float> values, Deadline deadline) override;
  std::vector<Bytes> all_gather(std::span<const std::byte> own, Deadline deadline) override;
  void broadcast(std::span<std::byte> bytes, Rank root, Deadline deadline) override;
  void barrier(Deadline deadline) override;
  void leave(const std::string& reason) override;
  Traffic traffic() const override { return {sent_.load(), received_.load()}; }

  struct Agreement {
    bool any = false;               // has said yes
    std::int64_t first = 0;         // the number of who leads
    std::vector<Rank> joined = {};  // are present from now on; none when any has said yes
  };
  Agreement agree(bool mine, std::int64_t number, Deadline deadline);

  // Who leads, after an agreement, to each that joined.
  void welcome(Rank rank, std::span<const std::byte> entry, Deadline deadline);

  // Waits to be let in; returns what who leads has to say. Throws CutOffError, PeerError.
  Bytes enter(Deadline deadline);

 private:
  friend std::string introduce_to(transport::Transport& transport, Rank leader,
                                  const std::string& own, std::vector<bool>& present,
                                  Deadline deadline);

  using Kind = LivingKind;
  using Combine = std::function<Bytes(const std::map<Rank, Bytes>& parts)>;

  Bytes operate(std::span<const std::byte> own, const Combine& combine, bool lets_in,
                Deadline deadline);
  Bytes take_answer(Bytes answer);

  // Both return the answer; nothing: who led is lost.
  Bytes lead(std::span<const std::byte> own, const Combine& combine, bool lets_in,
             Deadline deadline);
  std::optional<Bytes> follow(std::span<const std::byte> own, Deadline deadline);

  // Of who leads:
  void hear_all(Deadline deadline);
  void announce(Deadline deadline);
  void take(transport::Message message);
  void handle(transport::Message message);
  void handle_succession(Rank from, const LivingMessage& message);
  void look_for_lost();
  std::vector<Rank> require_majority();  // who has ended, as far as that had to be known
  bool has_majority_of(const std::vector<bool>& ranks, Rank leader,
                       const std::vector<Rank>& ended) const;
  std::vector<std::pair<Rank, std::string>> let_in();
  std::vector<Rank> awaited() const;
  void lose(Rank rank);
  void end_all(const std::string& reason);

  // Of the others:
  std::optional<transport::Message> receive_from_leader(Deadline deadline);
  void hear_others();
  Rank successor() const;
  [[noreturn]] void cut_off(const std::string& why) const;

  bool send(Rank to, Kind kind, std::uint64_t operation, std::span<const std::byte> payload,
            Deadline deadline);
  void fail_if_broken();

  transport::Transport& transport_;
  ElasticOptions options_;
  std::uint64_t operation_ = 0;
  std::atomic<Rank> leader_ = 0;  // whom this rank follows
  Rank answered_by_ = 0;
  Bytes last_;                            // answer; nothing before the first
  std::vector<bool> present_;             // according to it; of who leads: at the moment
  std::vector<Rank> joined_;              // in the last operation
  std::vector<transport::Message> kept_;  // from others than who leads

  // Of who leads:
  std::map<Rank, Bytes> parts_;               // of the operation under way
  std::map<Rank, transport::Message> early_;  // of the next one
  std::optional<Bytes> ahead_;                // the answer to this one, which some have already
  std::vector<Rank> introduced_;      // are back, but not present yet; who comes next calls them
  std::map<Rank, std::string> said_;  // by those, of themselves
  std::vector<Rank> ready_;           // of those, wait to be let in

  std::atomic<std::uint64_t> sent_ = 0;
  std::atomic<std::uint64_t> received_ = 0;
  std::mutex mutex_;     // guards the next line
  std::string failure_;  // empty while the group is whole
};

// Of a rank that is back: tells who leads who it is and learns what it should know, and who is
// there. Throws CutOffError, PeerError.
std::string introduce_to(transport::Transport& transport, Rank leader, const std::string& own,
                         std::vector<bool>& present, Deadline deadline);

}  // namespace cohort::collectives
