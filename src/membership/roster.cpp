#include "membership/roster.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/random.h"
#include "core/text.h"

namespace cohort::membership {

using Presence = MemberRow::Presence;

std::string named(Rank worker) { return "worker " + std::to_string(worker); }

std::string ranks_text(const std::vector<Rank>& ranks) {
  std::vector<std::string> texts;
  for (const Rank rank : ranks) texts.push_back(std::to_string(rank));
  return join(texts, ", ");
}

Roster::Roster(const MembershipOptions& options, const MembershipRules& rules, RosterOwner& owner,
               MembershipCounters& counters)
    : options_(options), rules_(rules), owner_(owner), counters_(counters) {}

void Roster::open(std::vector<MemberRow*> rows) {
  rows_ = std::move(rows);
  for (MemberRow* row : rows_) row->last_heard = now_;
}

void Roster::close(const std::string& reason) {
  std::vector<ConnectionId> in_it;
  for (const auto& [id, connection] : connections_) {
    if (connection.joined || connection.held_since) in_it.push_back(id);
  }
  for (const ConnectionId id : in_it) forget(id, reason);
  rows_.clear();
  stay();
}

MemberRow* Roster::find(Rank worker) const {
  const auto place = static_cast<std::size_t>(worker);
  return worker >= 0 && place < rows_.size() ? rows_[place] : nullptr;
}

void Roster::note_time(Deadline now) {
  now_ = now;
  if (std::exchange(started_, true)) return;
  idle_since_ = now;
  for (MemberRow* row : rows_) row->last_heard = now;
}

void Roster::on_connected(ConnectionId connection, Rank worker, Deadline now) {
  note_time(now);
  idle_since_.reset();
  connections_[connection] = {
      .worker = worker, .joined = false, .held_since = {}, .before = 0, .last_heard = now};
}

void Roster::on_heard(ConnectionId connection, Deadline now) {
  note_time(now);
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return;
  found->second.last_heard = now;
  MemberRow* row = find(found->second.worker);
  // A worker that has connected again is there, though its join may still be on the way.
  if (row != nullptr && (!row->connection || row->connection == connection)) row->last_heard = now;
}

void Roster::on_lost(ConnectionId connection, Deadline now) {
  note_time(now);
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return;
  MemberRow* row = find(found->second.worker);
  connections_.erase(found);
  if (connections_.empty()) idle_since_ = now;
  if (row == nullptr || row->connection != connection) return;
  row->connection.reset();
  row->lost_at = now;
  owner_.disconnected(*row);
  examine_held();
}

void Roster::forget(ConnectionId connection, const std::string& reason) {
  const auto found = connections_.find(connection);
  MemberRow* row = find(found->second.worker);
  connections_.erase(found);
  if (connections_.empty()) idle_since_ = now_;
  if (row != nullptr && row->connection == connection) {
    row->connection.reset();
    row->lost_at = now_;
    owner_.disconnected(*row);
  }
  owner_.close_connection(connection, reason);
}

void Roster::on_tick(Deadline now) {
  note_time(now);
  evict_silent();
  examine_held();
}

void Roster::on_persisted(std::uint64_t snapshot) {
  for (MemberRow* row : rows_) {
    if (row->goodbye_with != 0 && row->goodbye_with <= snapshot) say_goodbye(*row, 0);
    if (row->presence == Presence::kJoining && row->joins_with <= snapshot) activate(*row);
  }
}

MemberRow* Roster::peek(ConnectionId connection, const network::FrameHeader& header) const {
  const auto found = connections_.find(connection);
  if (found == connections_.end() || !found->second.joined) return nullptr;
  MemberRow* row = find(found->second.worker);
  return header.incarnation == row->incarnation ? row : nullptr;
}

MemberRow* Roster::sender(ConnectionId connection, const network::FrameHeader& header) {
  const auto found = connections_.find(connection);
  if (found == connections_.end()) {
    ++counters_.fenced;
    return nullptr;
  }
  if (!found->second.joined) {
    throw PeerError(named(found->second.worker) + " sent a frame before it had joined");
  }
  MemberRow& row = *find(found->second.worker);
  if (header.incarnation != row.incarnation) {
    found->second.joined = false;
    fence(connection, header.incarnation);
    return nullptr;
  }
  return &row;
}

void Roster::fence(ConnectionId connection, std::uint64_t incarnation) {
  ++counters_.fenced;
  network::FrameHeader header{.type = static_cast<network::FrameType>(MemberFrame::kFenced)};
  header.incarnation = incarnation;
  owner_.send_frame(connection, header, {});
}

void Roster::send(const MemberRow& row, MemberFrame type) {
  if (!row.connection) return;
  network::FrameHeader header{.type = static_cast<network::FrameType>(type)};
  header.incarnation = row.incarnation;
  owner_.send_frame(*row.connection, header, {});
}

std::optional<std::pair<Rank, JoinRequest>> Roster::asked(ConnectionId connection,
                                                          std::span<const std::byte> payload) {
  const auto found = connections_.find(connection);
  if (found == connections_.end()) {
    ++counters_.fenced;
    return std::nullopt;
  }
  Connection& own = found->second;
  JoinRequest request = decode_join(payload);
  const MemberRow* row = find(own.worker);
  const bool waits =
      row != nullptr && row->connection == connection && row->presence == Presence::kJoining;
  const bool back = request.kind == JoinKind::kGoBack;
  if ((own.joined && !back) || own.held_since || waits) {
    throw PeerError(named(own.worker) + " asked twice to join");
  }
  if (request.conversation != rules_.conversation) {
    const bool parameters = rules_.conversation == Conversation::kParameters;
    refuse(connection, parameters ? "this is a parameter server, not a best-model server"
                                  : "this is a best-model server, not a parameter server");
    return std::nullopt;
  }
  return std::pair(own.worker, std::move(request));
}

void Roster::refuse(ConnectionId connection, const std::string& why) {
  log(named(connections_.at(connection).worker) + " is refused: " + why);
  network::FrameHeader header{.type = static_cast<network::FrameType>(MemberFrame::kRefused)};
  const std::string text = why.substr(0, kMaxReasonBytes);
  header.length = static_cast<std::uint32_t>(text.size());
  owner_.send_frame(connection, header, std::as_bytes(std::span(text)));
  forget(connection, "refused");  // why has been said
}

// The connection is new, the worker is not.
bool Roster::return_with(ConnectionId connection, MemberRow& row,
                         const network::FrameHeader& header) {
  const bool gone = row.presence == Presence::kEvicted || row.presence == Presence::kNever;
  if (header.incarnation != row.incarnation || row.presence == Presence::kJoining ||
      (gone && !rules_.evicted_may_return)) {
    fence(connection, header.incarnation);
    return false;
  }
  if (row.connection && row.connection != connection) {
    forget(*row.connection, "replaced by a new connection");
  }
  stay();
  if (gone) log(named(row.worker) + " is back");
  if (row.presence != Presence::kLeft) row.presence = Presence::kPresent;
  row.was_present = welcomed_ = true;
  row.before = 0;
  row.connection = connection;
  row.last_heard = now_;
  connections_.at(connection).joined = true;
  return true;
}

void Roster::join_anew(ConnectionId connection, MemberRow& row,
                       const network::FrameHeader& header) {
  connections_.at(connection).before = header.place;
  hold_or_join(connection, row);
}

// Either the worker was restarted, or its rank was started twice; the old connection shows which,
// by whether anything more is heard of it.
void Roster::hold_or_join(ConnectionId connection, MemberRow& row) {
  // One that has left may not have got its goodbye yet.
  const bool there = row.presence == Presence::kPresent || row.presence == Presence::kLeft;
  Connection& own = connections_.at(connection);
  // Of a worker that asks several times, the latest is let in.
  const bool later = row.presence == Presence::kJoining && row.connection > connection;
  // One that waits already, waits a little more: the process may be about to connect again.
  const bool alive = there && (row.connection ? now_ - row.last_heard <= options_.evict_after
                                              : own.held_since && now_ - row.lost_at <=
                                                                      options_.evict_unconnected);
  if (!own.held_since) own.held_since = now_;
  if (later) return;
  if (!alive) {
    // A process that is stopped gets no place that another one, which is awake, would have to lose.
    if (now_ - own.last_heard > options_.evict_after / 2) return;
    own.held_since.reset();
    return take_place(connection, row);
  }
  const bool clear = now_ - *own.held_since > options_.evict_after * 3 / 2;
  if (clear && now_ - row.last_heard <= options_.evict_after / 2) {
    refuse(connection, named(row.worker) + " is already there");
  }
}

void Roster::examine_held() {
  std::vector<ConnectionId> held;
  for (const auto& [id, connection] : connections_) {
    if (connection.held_since) held.push_back(id);
  }
  std::sort(held.rbegin(), held.rend());  // the latest first
  for (const ConnectionId id : held) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) continue;
    MemberRow& row = *find(found->second.worker);
    const bool taken = row.presence == Presence::kJoining && row.connection;
    if (!taken) hold_or_join(id, row);
  }
}

std::uint64_t Roster::next_incarnation(const MemberRow& row) {
  if (rules_.incarnations == 0) return row.incarnation + 1;
  const auto worker = static_cast<std::uint64_t>(row.worker);
  return derive_seed(rules_.incarnations, "incarnation", {worker, ++issued_}) | 1U;
}

void Roster::take_place(ConnectionId connection, MemberRow& row) {
  if (row.connection && row.connection != connection) {
    forget(*row.connection, "replaced by a new process");
  }
  owner_.incarnation_ends(row);
  const std::uint64_t former = row.incarnation;
  row.incarnation = next_incarnation(row);
  stay();
  row.presence = Presence::kJoining;
  row.leaving = false;
  row.goodbye_with = 0;
  row.before = connections_.at(connection).before;
  row.connection = connection;
  row.last_heard = now_;
  row.joins_with = owner_.joining(row, former);
  if (row.joins_with == 0) activate(row);
}

void Roster::activate(MemberRow& row) {
  if (!row.connection) {
    row.presence = row.was_present ? Presence::kEvicted : Presence::kNever;
    return;
  }
  row.presence = Presence::kPresent;
  row.was_present = welcomed_ = true;
  connections_.at(*row.connection).joined = true;
  log(named(row.worker) + " has joined; " + text());
  owner_.joined(row);
}

bool Roster::leave(MemberRow& row) {
  row.leaving = false;
  row.left_here = true;
  if (std::exchange(row.presence, Presence::kLeft) == Presence::kLeft) return false;
  const char* const how[] = {"done", "interrupted", "failed"};
  log(named(row.worker) + " has left (" + how[static_cast<std::size_t>(row.leave)] + "); " +
      text());
  return true;
}

void Roster::say_goodbye(MemberRow& row, std::uint64_t snapshot) {
  row.goodbye_with = snapshot;
  if (snapshot == 0) send(row, MemberFrame::kGoodbye);
}

void Roster::evict(MemberRow& row, const std::string& why) {
  if (row.live()) {
    ++counters_.evictions;
    log(named(row.worker) + " is evicted: " + why);
  }
  owner_.incarnation_ends(row);
  row.presence = row.was_present ? Presence::kEvicted : Presence::kNever;
  row.leaving = false;
  if (row.connection) forget(*row.connection, why);
  owner_.evicted(row);
}

void Roster::evict_silent() {
  for (MemberRow* row : rows_) {
    const bool awaited = row->presence == Presence::kAwaited;
    const auto limit =
        awaited ? std::max(options_.return_within, options_.evict_after) : options_.evict_after;
    if (!row->expected() || now_ - row->last_heard <= limit) continue;
    const auto seconds = std::chrono::duration<double>(limit).count();
    evict(*row, awaited ? "has not come back since the restart"
                        : "not heard of for " + std::to_string(seconds).substr(0, 4) + " s");
  }
}

int Roster::live() const {
  return static_cast<int>(
      std::count_if(rows_.begin(), rows_.end(), [](const MemberRow* row) { return row->live(); }));
}

int Roster::count(Presence presence) const {
  return static_cast<int>(std::count_if(
      rows_.begin(), rows_.end(), [&](const MemberRow* row) { return row->presence == presence; }));
}

bool Roster::somebody_there() const {
  return std::any_of(rows_.begin(), rows_.end(),
                     [](const MemberRow* row) { return row->expected(); });
}

std::string Roster::text(const std::vector<Rank>& slow) const {
  if (!is_open()) return "no worker yet";
  std::vector<Rank> awaited;
  for (const MemberRow* row : rows_) {
    const bool to_come = row->presence == Presence::kNever || row->presence == Presence::kJoining ||
                         row->presence == Presence::kAwaited;
    const bool late = std::find(slow.begin(), slow.end(), row->worker) != slow.end();
    if (to_come || late) awaited.push_back(row->worker);
  }
  std::string text = std::to_string(live()) + " of " + std::to_string(rows_.size()) + " workers";
  if (!awaited.empty()) text += "; waiting for " + ranks_text(awaited);
  return text;
}

}  // namespace cohort::membership
