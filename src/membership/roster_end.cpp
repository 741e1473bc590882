// The end of a job: who ended how, when it is time to go; and what of a row is on disk.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "membership/roster.h"

namespace cohort::membership {

using nlohmann::json;
using Presence = MemberRow::Presence;

namespace {

std::string ending_of(const MemberRow& row) {
  if (row.presence == Presence::kNever) return "never came";
  if (row.presence != Presence::kLeft) return "given up";
  if (row.leave == LeaveKind::kDone) return "done";
  return row.leave == LeaveKind::kInterrupted ? "interrupted" : "failed";
}

}  // namespace

bool Roster::all_left(std::initializer_list<LeaveKind> how) const {
  return is_open() && std::all_of(rows_.begin(), rows_.end(), [&](const MemberRow* row) {
           return row->presence == Presence::kLeft &&
                  std::find(how.begin(), how.end(), row->leave) != how.end();
         });
}

// "all workers are done", or "workers 0, 2: done; worker 1: given up".
std::string Roster::endings() const {
  if (all_done()) return "all workers are done";
  std::vector<std::pair<std::string, std::vector<Rank>>> by_ending;  // in the order of ranks
  for (const MemberRow* row : rows_) {
    const std::string how = ending_of(*row);
    auto found = std::find_if(by_ending.begin(), by_ending.end(),
                              [&](const auto& each) { return each.first == how; });
    if (found == by_ending.end()) found = by_ending.insert(found, {how, {}});
    found->second.push_back(row->worker);
  }
  std::vector<std::string> parts;
  for (const auto& [how, ranks] : by_ending) {
    parts.push_back((ranks.size() > 1 ? "workers " : "worker ") + ranks_text(ranks) + ": " + how);
  }
  return join(parts, "; ");
}

// How long those are still waited for who may come though nobody is there; nothing: as long as it
// takes, but for idle_exit.
std::optional<std::chrono::nanoseconds> Roster::wait_for_the_end() const {
  if (rules_.all_must_end) {
    // One that was interrupted may come back.
    if (!all_left({LeaveKind::kDone, LeaveKind::kFailed})) return std::nullopt;
    return welcomed_ ? std::chrono::nanoseconds(0) : options_.late_start;
  }
  if (somebody_there() || count(Presence::kLeft) == 0) return std::nullopt;
  std::chrono::nanoseconds wait{0};
  if (count(Presence::kEvicted) > 0) wait = options_.evict_after * 2;
  if (count(Presence::kNever) > 0) wait = std::max(wait, options_.late_start);
  return wait;
}

std::string Roster::reason_to_end() {
  if (connections_.empty()) {
    if (!idle_since_) idle_since_ = now_;
    if (now_ - *idle_since_ >= options_.idle_exit) {
      return "no worker has been here for too long" + (is_open() ? "; " + endings() : "");
    }
  }
  const auto wait = wait_for_the_end();
  if (!wait) {
    gone_since_.reset();
    return {};
  }
  if (!gone_since_) gone_since_ = now_;
  return now_ - *gone_since_ >= *wait ? endings() : "";
}

void Roster::end(const std::string& why, bool after_snapshot) {
  (after_snapshot ? ending_ : finished_) = why;
}

bool Roster::ending() {
  if (ending_ && somebody_there()) ending_.reset();  // one that had been evicted has come back
  return ending_.has_value();
}

void Roster::last_snapshot_done(const std::string& failure) {
  if (!ending()) return;
  finished_ = *ending_;
  if (!failure.empty()) *finished_ += "; the last state could not be written: " + failure;
}

void Roster::stay() {
  gone_since_.reset();
  ending_.reset();
  finished_.reset();
}

json to_json(const MemberRow& row) {
  const Presence kept = row.expected() ? Presence::kAwaited : row.presence;
  return {{"presence", static_cast<int>(kept)},
          {"was-present", row.was_present},
          {"incarnation", row.incarnation},
          {"leave", static_cast<int>(row.leave)}};
}

void read_row(const json& object, MemberRow& row) {
  const int presence = object.at("presence").get<int>();
  const int leave = object.value("leave", 0);
  if (presence < 0 || presence > static_cast<int>(Presence::kEvicted) || leave < 0 ||
      leave > static_cast<int>(LeaveKind::kFailed)) {
    throw FileError("a server's state holds an unknown value");
  }
  row.presence = static_cast<Presence>(presence);
  if (row.expected()) row.presence = Presence::kAwaited;
  row.was_present = object.at("was-present").get<bool>() || row.presence == Presence::kAwaited;
  row.leave = static_cast<LeaveKind>(leave);
  row.incarnation = object.at("incarnation").get<std::uint64_t>();
}

}  // namespace cohort::membership
