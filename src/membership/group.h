// One rank's view of an elastic group: who is there, who leads, and the answers that all get alike.
// A state machine without sockets, threads or clock: its owner tells it what happens and what time
// it is, and carries what it sends.
//
// In an operation every rank that is present contributes a part to the leader, which makes one
// answer of them and sends it to all. The leader is rank 0, and when it is lost the lowest of those
// left. A rank is lost when the link to it is; who gives another up closes the link to it.
//
//   losses      The leader tells the others at once whom it has lost, as long as it has a quorum
//               without; they tell the lost rank and close their links to it.
//   succession  Nobody gets an answer before all have got the one before, so ranks differ by one at
//               most: the next leader hears from all which answer they got last, and gives it to
//               those who lack it.
//   quorum      A side goes on when it has more than half of those who were present at the last
//               answer, or half and the leader; and the same of the answer before, since the last
//               one may have reached nobody. So of two sides at most one makes two answers. Less is
//               enough when the processes of all others have ended for certain, unless the side was
//               stopped itself: they may have gone on before. Otherwise it is cut off.
//   return      A rank that is back is introduced by the leader, reaches the others and enter()s.
//               The next answer that lets in names it as joined; then the leader's owner
//               welcome()s it with all it has to know. Until then it changes nothing.
//   the end     A rank that leaves with a reason ends all others with it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/clock.h"
#include "membership/group_messages.h"

namespace cohort::membership {

class ElasticGroup {
 public:
  // What the machine needs done; none of these may call it.
  class Ports {
   public:
    virtual ~Ports() = default;
    // Messages to one rank arrive in order, once each, until the link is lost, which shows later.
    virtual void send(Rank to, Bytes message) = 0;
    // Closes the link to the rank after a last word, if there is one; nothing where it is lost.
    virtual void give_up(Rank rank, Bytes last_word) = 0;
    // Whoever is back in the place of a lost rank counts from now on. Whether there is a link.
    virtual bool readmit(Rank rank) = 0;
    // Whether the process of a lost rank has ended, for certain; nothing where nobody can tell.
    virtual std::optional<bool> has_ended(Rank rank) = 0;
    // Of the leader: what a rank that is back and said `text` is told. Throws Error to refuse it.
    virtual std::string introduce(Rank rank, const std::string& text) = 0;
    // Of the leader, before every answer that may let ranks in: those who are back should find it.
    virtual void leads() = 0;
  };

  struct Combined {
    Bytes result = {};
    bool lets_in = false;  // ranks that wait for it join with this answer
  };                       // or throws PeerError, which ends the group
  using Combine = std::function<Combined(const std::map<Rank, Bytes>& parts)>;

  struct End {
    bool cut_off = false;  // the others may go on; otherwise they end for the same reason
    std::string reason = {};
  };

  // `enters`: this rank will enter() a group under way, which that one leads.
  ElasticGroup(Rank rank, int size, Ports& ports, std::optional<Rank> enters = std::nullopt);

  // What its owner asks for, one operation at a time.
  void contribute(Bytes part, Combine combine, Deadline now);
  void enter();
  void welcome(Rank rank, std::span<const std::byte> entry);  // of the leader: each that joined
  void leave(const std::string& reason);
  void run_out_of_patience();  // ends an operation that takes too long, and names who is late

  // What happens, and when; at least some times a second, on_tick(). A link is lost after all that
  // came by it has been told.
  void on_message(Rank from, std::span<const std::byte> message, Deadline now);
  void on_lost(Rank rank, const std::string& why, Deadline now);
  void on_tick(Deadline now);

  // What has come of it.
  std::uint64_t answered() const { return answered_; }  // operations
  const ElasticAnswer& answer() const { return answer_; }
  const std::optional<Bytes>& entry() const { return entry_; }
  const std::optional<End>& end() const { return end_; }  // nothing happens after it
  bool reaches(Rank rank) const { return !gone_[rank]; }

 private:
  using Kind = ElasticKind;
  void look_at_clock(Deadline now);
  bool has(Rank rank) const { return answer_.present[rank] && !gone_[rank]; }
  std::vector<bool> ranks_here() const;
  std::vector<Rank> awaited() const;

  void handle(Rank from, const ElasticMessage& message);
  void part_came(Rank from, const ElasticMessage& message);
  void result_came(Rank from, const ElasticMessage& message);
  void succession_came(Rank from, const ElasticMessage& message);
  void presence_came(std::span<const std::byte> present);
  void take_answer(std::uint64_t operation, std::span<const std::byte> bytes);
  void forget(Rank rank);
  void drop(Rank rank);
  void follow_next();
  void turn_to_leader();
  void finish(const std::string& reason);
  void cut_off(const std::string& why);
  void send(Rank to, Kind kind, std::uint64_t operation, std::span<const std::byte> payload);

  // Of the leader, in group_leader.cpp:
  void lead();
  void make_answer();
  void tell_losses();
  void rank_returned(Rank from, const std::string& text);
  std::vector<std::pair<Rank, std::string>> let_in();
  bool is_established() const;
  bool has_quorum();
  bool has_majority_of(const std::vector<bool>& ranks, Rank leader) const;

  const Rank rank_;
  const int size_;
  Ports& ports_;
  Rank leader_;
  const bool newcomer_;
  bool entering_;  // not let in yet
  std::optional<Bytes> entry_ = {};
  std::optional<End> end_ = {};
  std::uint64_t answered_ = 0;
  Bytes last_ = {};                         // the last answer; nothing before the first
  ElasticAnswer answer_;                    // the same; before the first all are present
  std::vector<bool> gone_;                  // by rank: no link, or none that counts
  std::optional<Bytes> own_;                // part to the operation under way
  Combine combine_ = nullptr;               // for it
  std::map<Rank, Bytes> parts_;             // to it, of the others
  std::map<Rank, std::uint64_t> stood_;     // who turned to this rank, and how many answers it had
  std::map<Rank, std::string> introduced_;  // are back, but not present yet; who they are
  std::set<Rank> ready_;                    // of those, wait to be let in
  std::set<Rank> ended_;                    // for certain, as far as that had to be known
  Deadline now_ = {};
  int answers_after_stop_ = 2;          // of which the first may be of what had come before
  Deadline lost_at_ = {};               // the last time that a rank was lost
  bool told_ = true;                    // the others know of all losses
  std::optional<Deadline> doubted_at_;  // since when there is no quorum
  Deadline ask_at_ = {};                // whether more processes have ended
};

}  // namespace cohort::membership
