#include "membership/roster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace cohort::membership {
namespace {

using Presence = MemberRow::Presence;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A server that does nothing but have members.
struct Club : RosterOwner {
  explicit Club(int workers, const MembershipRules& given = {}) : rules(given) {
    for (int i = 0; i < workers; ++i) rows.push_back({.worker = i});
    start();
  }

  void start() {
    roster = std::make_unique<Roster>(options, rules, *this, counters);
    std::vector<MemberRow*> all;
    for (MemberRow& row : rows) all.push_back(&row);
    roster->open(all);
  }

  ConnectionId connect(Rank worker) {
    roster->on_connected(++last, worker, now);
    return last;
  }
  void ask(ConnectionId connection, std::uint64_t incarnation = 0) {
    const auto asked = roster->asked(connection, encode(JoinRequest{.conversation = wants}));
    if (!asked) return;
    network::FrameHeader header;
    header.incarnation = incarnation;
    MemberRow& row = rows[static_cast<std::size_t>(asked->first)];
    if (incarnation == 0) {
      roster->join_anew(connection, row, header);
    } else {
      roster->return_with(connection, row, header);
    }
  }
  ConnectionId join(Rank worker, std::uint64_t incarnation = 0) {
    const ConnectionId connection = connect(worker);
    ask(connection, incarnation);
    return connection;
  }
  // Ticks; those connections are heard.
  void pass(std::chrono::nanoseconds time, const std::vector<ConnectionId>& heard = {}) {
    for (const Deadline until = now + time; now < until;) {
      now += milliseconds(100);
      for (const ConnectionId each : heard) roster->on_heard(each, now);
      roster->on_tick(now);
    }
  }
  void leave(Rank worker, LeaveKind how = LeaveKind::kDone) {
    MemberRow& row = rows[static_cast<std::size_t>(worker)];
    row.leave = how;
    roster->leave(row);
    roster->say_goodbye(row, 0);
  }
  bool was_sent(ConnectionId to, MemberFrame type) const {
    return std::any_of(sent.begin(), sent.end(), [&](const auto& each) {
      return each.first == to && each.second == static_cast<network::FrameType>(type);
    });
  }

  void send_frame(ConnectionId to, const network::FrameHeader& header,
                  std::span<const std::byte>) override {
    sent.emplace_back(to, header.type);
  }
  void close_connection(ConnectionId connection, const std::string&) override {
    closed.push_back(connection);
  }
  void disconnected(MemberRow&) override {}
  void incarnation_ends(MemberRow& row) override { ended.push_back(row.incarnation); }
  std::uint64_t joining(MemberRow&, std::uint64_t) override { return needs; }
  void joined(MemberRow& row) override { told.push_back(row.incarnation); }
  void evicted(MemberRow&) override {}

  MembershipOptions options;
  MembershipRules rules;
  MembershipCounters counters;
  std::vector<MemberRow> rows;
  std::unique_ptr<Roster> roster;
  Deadline now = Deadline{} + std::chrono::hours(1);
  ConnectionId last = 0;
  std::uint64_t needs = 0;  // the snapshot that a join waits for
  Conversation wants = Conversation::kParameters;
  std::vector<std::pair<ConnectionId, network::FrameType>> sent;
  std::vector<ConnectionId> closed;
  std::vector<std::uint64_t> ended, told;
};

TEST(Roster, IncarnationsCountUpAndEachIsToldOnce) {
  Club club(2);
  club.join(0);
  club.join(1);
  EXPECT_EQ(club.told, (std::vector<std::uint64_t>{1, 1}));
  const ConnectionId first = *club.rows[0].connection;
  club.roster->on_lost(first, club.now);
  club.join(0);
  club.pass(seconds(1), {club.last, *club.rows[1].connection});
  EXPECT_EQ(club.told.back(), 2U);
  EXPECT_EQ(club.ended.back(), 1U);
}

TEST(Roster, ANewIncarnationIsToldWhenItsSnapshotIsOnDisk) {
  Club club(1);
  club.needs = 7;
  const ConnectionId connection = club.join(0);
  EXPECT_EQ(club.rows[0].presence, Presence::kJoining);
  EXPECT_THROW(club.ask(connection), PeerError);  // twice
  club.roster->on_persisted(6);
  EXPECT_TRUE(club.told.empty());
  club.roster->on_persisted(7);
  EXPECT_EQ(club.told.size(), 1U);
  EXPECT_EQ(club.rows[0].presence, Presence::kPresent);
}

TEST(Roster, AJoinIsHeldWhileTheFirstLivesThenRefused) {
  Club club(1);
  const ConnectionId first = club.join(0);
  const ConnectionId second = club.join(0);
  club.pass(seconds(2), {first, second});
  EXPECT_FALSE(club.was_sent(second, MemberFrame::kRefused));
  club.pass(seconds(2), {first, second});
  EXPECT_TRUE(club.was_sent(second, MemberFrame::kRefused));
  EXPECT_EQ(club.rows[0].connection, first);
}

TEST(Roster, AJoinIsHeldUntilTheFirstIsSilentThenLetIn) {
  Club club(1);
  const ConnectionId first = club.join(0);
  const ConnectionId second = club.join(0);
  club.pass(seconds(2), {second});
  EXPECT_EQ(club.rows[0].connection, first);
  club.pass(seconds(1), {second});
  EXPECT_EQ(club.rows[0].connection, second);
  EXPECT_EQ(club.rows[0].incarnation, 2U);
  network::FrameHeader old;
  old.incarnation = 1;
  EXPECT_EQ(club.roster->peek(first, old), nullptr);
  EXPECT_EQ(club.roster->sender(first, old), nullptr);  // a connection that is no more
  EXPECT_EQ(club.roster->sender(second, old), nullptr);
  EXPECT_TRUE(club.was_sent(second, MemberFrame::kFenced));
  EXPECT_EQ(club.counters.fenced, 2U);
}

TEST(Roster, AProcessThatIsStoppedGetsNoPlace) {
  Club club(1);
  const ConnectionId first = club.join(0);
  const ConnectionId second = club.join(0);
  club.pass(seconds(2), {first});
  club.roster->on_lost(first, club.now);
  club.pass(seconds(1));
  EXPECT_FALSE(club.rows[0].connection.has_value());
  club.pass(milliseconds(100), {second});
  EXPECT_EQ(club.rows[0].connection, second);
}

TEST(Roster, OnlySilenceEvictsAndTheEvictedIsFenced) {
  Club club(2);
  const ConnectionId quiet = club.join(0);
  const ConnectionId other = club.join(1);
  club.pass(seconds(10), {quiet, other});
  EXPECT_EQ(club.counters.evictions, 0U);
  club.pass(seconds(3), {other});
  EXPECT_EQ(club.rows[0].presence, Presence::kEvicted);
  EXPECT_EQ(club.closed, std::vector<ConnectionId>{quiet});
  EXPECT_EQ(club.roster->text(), "1 of 2 workers");
  const ConnectionId again = club.join(0, 1);
  EXPECT_TRUE(club.was_sent(again, MemberFrame::kFenced));
  club.ask(again);  // on the same connection, as a new process
  EXPECT_EQ(club.rows[0].presence, Presence::kPresent);
  EXPECT_EQ(club.rows[0].incarnation, 2U);
}

TEST(Roster, WhereThatIsAllowedTheEvictedReturnsAsItWas) {
  Club club(1, {.incarnations = 9, .evicted_may_return = true});
  club.join(0);
  const std::uint64_t incarnation = club.rows[0].incarnation;
  club.pass(seconds(3));
  ASSERT_EQ(club.rows[0].presence, Presence::kEvicted);
  club.join(0, incarnation);
  EXPECT_EQ(club.rows[0].presence, Presence::kPresent);
  club.pass(seconds(3));
  club.join(0);  // a new process has the place from here on
  EXPECT_NE(club.rows[0].incarnation, incarnation);
  EXPECT_TRUE(club.was_sent(club.join(0, incarnation), MemberFrame::kFenced));
}

TEST(Roster, MembersOfASnapshotAreAwaitedAndReturnOrAreGivenUp) {
  Club club(3);
  club.join(0);
  club.join(1);
  for (MemberRow& row : club.rows) {
    const nlohmann::json kept = to_json(row);
    row = MemberRow{.worker = row.worker};
    read_row(kept, row);
  }
  club.start();
  club.connect(0);
  EXPECT_EQ(club.roster->text(), "2 of 3 workers; waiting for 0, 1, 2");
  club.ask(club.last, 1);
  const ConnectionId back = club.last;
  EXPECT_EQ(club.rows[0].presence, Presence::kPresent);
  club.pass(seconds(4), {back});
  EXPECT_EQ(club.rows[1].presence, Presence::kAwaited);
  club.pass(seconds(2), {back});
  EXPECT_EQ(club.rows[1].presence, Presence::kEvicted);
}

TEST(Roster, AGoodbyeWaitsForItsSnapshot) {
  Club club(1);
  const ConnectionId connection = club.join(0);
  EXPECT_TRUE(club.roster->leave(club.rows[0]));
  EXPECT_FALSE(club.roster->leave(club.rows[0]));
  club.roster->say_goodbye(club.rows[0], 3);
  EXPECT_FALSE(club.was_sent(connection, MemberFrame::kGoodbye));
  club.roster->on_persisted(3);
  EXPECT_TRUE(club.was_sent(connection, MemberFrame::kGoodbye));
}

TEST(Roster, EndsWhenAllAreDoneOrFailedAndNotWhileOneMayComeBack) {
  Club club(2);
  const ConnectionId one = club.join(0);
  const ConnectionId two = club.join(1);
  club.leave(0);
  club.leave(1, LeaveKind::kInterrupted);
  EXPECT_EQ(club.roster->reason_to_end(), "");
  club.roster->on_lost(one, club.now);
  club.roster->on_lost(two, club.now);
  club.pass(std::chrono::minutes(11));
  EXPECT_EQ(club.roster->reason_to_end(),
            "no worker has been here for too long; worker 0: done; worker 1: interrupted");
  club.leave(1, LeaveKind::kFailed);
  Club other(1);
  other.join(0);
  other.leave(0);
  EXPECT_EQ(other.roster->reason_to_end(), "all workers are done");
}

TEST(Roster, EndsWithoutThoseWhoDoNotComeWhereTheyAreNotNeeded) {
  Club club(2, {.all_must_end = false});
  const ConnectionId one = club.join(0);
  EXPECT_EQ(club.roster->reason_to_end(), "");
  club.leave(0);
  EXPECT_EQ(club.roster->reason_to_end(), "");
  club.pass(seconds(31), {one});
  EXPECT_EQ(club.roster->reason_to_end(), "worker 0: done; worker 1: never came");
}

TEST(Roster, AWorkerThatJoinsTakesTheEndBack) {
  Club club(1);
  club.join(0);
  club.leave(0);
  club.roster->end("over", true);
  EXPECT_TRUE(club.roster->ending());
  club.join(0, 1);  // it has left: nothing more comes of it, but it is told so once more
  club.roster->end("over", true);
  club.roster->last_snapshot_done("disk full");
  EXPECT_EQ(club.roster->finished().value_or(""),
            "over; the last state could not be written: disk full");
  club.pass(seconds(3));
  club.join(0);
  EXPECT_FALSE(club.roster->finished().has_value());
}

TEST(Roster, AWorkerOfTheOtherConversationIsToldSo) {
  Club club(1);
  club.wants = Conversation::kBestModel;
  const ConnectionId connection = club.join(0);
  EXPECT_TRUE(club.was_sent(connection, MemberFrame::kRefused));
  EXPECT_EQ(club.closed, std::vector<ConnectionId>{connection});
}

TEST(Roster, AFrameBeforeTheJoinBreaksTheProtocol) {
  Club club(1);
  const ConnectionId connection = club.connect(0);
  EXPECT_EQ(club.roster->peek(connection, {}), nullptr);
  EXPECT_THROW(club.roster->sender(connection, {}), PeerError);
}

}  // namespace
}  // namespace cohort::membership
