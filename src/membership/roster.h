// Who belongs to a job, as a server of it sees that: a state machine without sockets, threads,
// clock or disk. Parameter servers and the best-model server each have one (docs/protocol.md,
// Membership).
//
// What it promises:
//   - One process has a worker's place. Another one that asks for it is held while the first may be
//     alive, let in when that is silent, and refused when it clearly lives.
//   - No incarnation is given out twice; a frame of one that is over changes nothing.
//   - Only silence evicts, and nobody is waited for longer than that takes.
//   - A worker that was a member before the server's restart is awaited, and returns as it was.
//   - The server ends when nobody can come any more, or nobody has come for long.
//
// The rows are the owner's: open() names them when the first worker has said what the job is. Time
// is what the owner tells; connection ids are never used twice.
#pragma once

#include <chrono>
#include <initializer_list>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "membership/member.h"
#include "membership/messages.h"
#include "membership/roster_owner.h"

namespace cohort::membership {

class Roster {
 public:
  struct Connection {
    Rank worker = 0;
    bool joined = false;
    // Asks for a new incarnation while another connection of that worker seems to be alive.
    std::optional<Deadline> held_since = {};
    std::uint64_t before = 0;  // MemberRow::before
    Deadline last_heard = {};
  };

  // `owner` and `counters` outlive the roster.
  Roster(const MembershipOptions& options, const MembershipRules& rules, RosterOwner& owner,
         MembershipCounters& counters);

  // The job is known, or there is none any more: then those who are in it or wait are sent away.
  void open(std::vector<MemberRow*> rows);
  void close(const std::string& reason);
  bool is_open() const { return !rows_.empty(); }
  const std::vector<MemberRow*>& rows() const { return rows_; }
  MemberRow* find(Rank worker) const;

  // What happens. on_heard(): something was heard, if only a heartbeat.
  void note_time(Deadline now);
  void on_connected(ConnectionId connection, Rank worker, Deadline now);
  void on_heard(ConnectionId connection, Deadline now);
  void on_lost(ConnectionId connection, Deadline now);
  void on_tick(Deadline now);                 // evicts, and lets in who was held
  void on_persisted(std::uint64_t snapshot);  // tells who joined or left with it

  Deadline now() const { return now_; }
  const std::map<ConnectionId, Connection>& connections() const { return connections_; }

  // The member whose current incarnation sends this; null: none. The first has no effect, the
  // second counts and answers what is of another incarnation, and throws PeerError before a join.
  MemberRow* peek(ConnectionId connection, const network::FrameHeader& header) const;
  MemberRow* sender(ConnectionId connection, const network::FrameHeader& header);

  // A join has come: who asks and what for; nothing when there is nobody to answer. A worker that
  // is joined may ask to go back. Throws PeerError when it has asked already, or makes no sense.
  std::optional<std::pair<Rank, JoinRequest>> asked(ConnectionId connection,
                                                    std::span<const std::byte> payload);
  // With a job that is accepted. Anew: at once, when the place is free, or refused.
  void join_anew(ConnectionId connection, MemberRow& row, const network::FrameHeader& header);
  // With the incarnation that it has; false: that one is over, and the worker was told so.
  bool return_with(ConnectionId connection, MemberRow& row, const network::FrameHeader& header);
  void let_ask_again(ConnectionId connection) { connections_.at(connection).joined = false; }
  void refuse(ConnectionId connection, const std::string& why);
  void forget(ConnectionId connection, const std::string& reason);

  // It has left, which holds for the others at once. False: that was known.
  bool leave(MemberRow& row);
  // Lets it go when that snapshot is on disk; 0: now.
  void say_goodbye(MemberRow& row, std::uint64_t snapshot);
  void evict(MemberRow& row, const std::string& why);

  int live() const;
  int count(MemberRow::Presence presence) const;
  bool somebody_there() const;
  bool all_left(std::initializer_list<LeaveKind> how) const;
  bool all_done() const { return all_left({LeaveKind::kDone}); }
  // Members and whom the job still waits for, of `slow` beside others: "2 of 4 workers; waiting for
  // 1, 3".
  std::string text(const std::vector<Rank>& slow = {}) const;

  // The end. Why it is time to go, with who ended how; empty: it is not.
  std::string reason_to_end();
  // Ends, when the last snapshot is on disk or at once, unless a worker that joins takes that back.
  void end(const std::string& why, bool after_snapshot);
  bool ending();                                        // waits for the snapshot
  void last_snapshot_done(const std::string& failure);  // empty: it is on disk
  const std::optional<std::string>& finished() const { return finished_; }

 private:
  void log(const std::string& line) const {
    if (options_.log) options_.log(line);
  }
  void fence(ConnectionId connection, std::uint64_t incarnation);
  void send(const MemberRow& row, MemberFrame type);
  void hold_or_join(ConnectionId connection, MemberRow& row);
  void examine_held();
  std::uint64_t next_incarnation(const MemberRow& row);
  void take_place(ConnectionId connection, MemberRow& row);
  void activate(MemberRow& row);
  void evict_silent();
  void stay();  // though it was about to end
  std::optional<std::chrono::nanoseconds> wait_for_the_end() const;
  std::string endings() const;

  const MembershipOptions options_;
  const MembershipRules rules_;
  RosterOwner& owner_;
  MembershipCounters& counters_;
  Deadline now_ = {};
  bool started_ = false;
  std::vector<MemberRow*> rows_;  // by rank
  std::map<ConnectionId, Connection> connections_;
  std::uint64_t issued_ = 0;                 // random incarnations
  bool welcomed_ = false;                    // somebody has joined since this server started
  std::optional<Deadline> idle_since_ = {};  // without any connection
  std::optional<Deadline> gone_since_ = {};  // nobody can come any more
  std::optional<std::string> ending_ = {};   // the reason, while the last snapshot is written
  std::optional<std::string> finished_ = {};
};

// A row's part of a snapshot, as members of a JSON object. A member that is present or joining (it
// may have been told) is awaited when it is read. Throws FileError or json::exception.
nlohmann::json to_json(const MemberRow& row);
void read_row(const nlohmann::json& object, MemberRow& row);

}  // namespace cohort::membership
