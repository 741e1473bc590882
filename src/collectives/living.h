// Collectives among those who are left: a rank that is lost is left out instead of ending the
// others, and one that comes back is let in.
//
// Rank 0 leads. In an operation every other rank sends it one message and gets one back, with who
// took part; so for P ranks and S bytes: 2 (P - 1) messages, 2 (P - 1) S bytes through rank 0
// (all_gather: P (P - 1) S from it). That suits questions between steps and a model now and then,
// not gradients. The operations of collectives.h, with these differences:
//
//   all_reduce   sums over those present
//   all_gather   nothing of those who are not
//   a lost rank  is no PeerError but no longer present(); one that leaves for a reason ends the
//                others with that reason, as everywhere
//   rank 0 lost  is a CutOffError for the others: perhaps it is they who were lost
//
// A rank comes back in four steps: introduce_to_first(), then it reaches the others, then enter()
// asks to be let in; the others learn of it in the same agree(), after which rank 0 says welcome()
// with all that the newcomer has to know. From then on it takes part.
//
// Over the messages of a transport on which a lost rank is gone() and may be back; with a tag of
// its own. One thread; leave() from any.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "collectives/collectives.h"
#include "transport/transport.h"

namespace cohort {

struct LivingOptions {
  // Of rank 0: what a rank that comes back is told, which said `text` of itself.
  std::function<std::string(Rank rank, const std::string& text)> introduce = nullptr;
};

class LivingCollectives final : public Collectives {
 public:
  // The transport outlives it, but for the destructor. `returns`: this rank will enter() a group
  // that is under way.
  LivingCollectives(Transport& transport, LivingOptions options, bool returns = false);

  Rank rank() const override { return transport_.rank(); }
  int size() const override { return transport_.size(); }
  int present() const override;
  bool is_present(Rank rank) const { return present_[rank]; }

  void all_reduce(std::span<float> values, Deadline deadline) override;
  std::vector<Bytes> all_gather(std::span<const std::byte> own, Deadline deadline) override;
  void broadcast(std::span<std::byte> bytes, Rank root, Deadline deadline) override;
  void barrier(Deadline deadline) override;
  void leave(const std::string& reason) override;
  Traffic traffic() const override { return {sent_.load(), received_.load()}; }

  struct Agreement {
    bool any = false;               // has said yes
    std::int64_t first = 0;         // rank 0's number
    std::vector<Rank> joined = {};  // are present from now on; none when any has said yes
  };
  Agreement agree(bool mine, std::int64_t number, Deadline deadline);

  // Rank 0, after an agreement, to each that joined.
  void welcome(Rank rank, std::span<const std::byte> entry, Deadline deadline);

  // Waits to be let in; returns what rank 0 has to say. Throws CutOffError, PeerError.
  Bytes enter(Deadline deadline);

 private:
  enum class Kind : std::uint32_t {
    kPart,          // to rank 0: a contribution to an operation
    kResult,        // from it: who is present, then the result
    kFarewell,      // to or from it: why the group ends
    kReturn,        // to it: a rank is back, and who it is
    kIntroduction,  // from it: who is present, then what it should know
    kReady,         // to it: it may be let in
    kEntry          // from it: what it goes on with
  };
  struct Header;
  friend std::string introduce_to_first(Transport& transport, const std::string& own,
                                        std::vector<bool>& present, Deadline deadline);

  using Combine = std::function<Bytes(const std::map<Rank, Bytes>& parts)>;

  Bytes operate(std::span<const std::byte> own, const Combine& combine, bool lets_in,
                Deadline deadline);
  Bytes lead(std::span<const std::byte> own, const Combine& combine, bool lets_in,
             Deadline deadline);
  Bytes follow(std::span<const std::byte> own, Deadline deadline);
  void take(Message message);
  void handle(Message message);
  void look_for_lost();
  std::vector<Rank> awaited() const;
  void lose(Rank rank);
  bool send(Rank to, Kind kind, std::uint64_t operation, std::span<const std::byte> payload,
            Deadline deadline);
  Message receive_from_first(Deadline deadline);
  void take_presence(std::span<const std::byte> flags);
  Bytes presence() const;
  void end_all(const std::string& reason);
  void fail_if_broken();

  Transport& transport_;
  LivingOptions options_;
  std::uint64_t operation_ = 0;
  std::vector<bool> present_;
  std::vector<Rank> joined_;       // in the last operation
  std::map<Rank, Bytes> parts_;    // of the operation under way; rank 0's
  std::map<Rank, Message> early_;  // of the next one
  std::vector<Rank> introduced_;   // are back, but not present yet; who comes next calls them
  std::vector<Rank> ready_;        // of those, wait to be let in
  std::atomic<std::uint64_t> sent_ = 0;
  std::atomic<std::uint64_t> received_ = 0;
  std::mutex mutex_;     // guards the next line
  std::string failure_;  // empty while the group is whole
};

// Of a rank that is back: tells rank 0 who it is and learns what it should know, and who is there.
// Throws CutOffError, PeerError.
std::string introduce_to_first(Transport& transport, const std::string& own,
                               std::vector<bool>& present, Deadline deadline);

}  // namespace cohort
