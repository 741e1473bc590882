// Groups that lose ranks and get them back.
#include "collectives/elastic.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "transport/in_process.h"
#include "transport/rank_threads.h"
#include "transport/tcp.h"

namespace cohort::collectives {
namespace {

using namespace std::chrono_literals;

float sum_of_ones(ElasticCollectives& group) {
  float value = 1;
  group.all_reduce({&value, 1}, transport::far());
  return value;
}

TEST(Elastic, WhoIsLostIsLeftOutAndTheOthersGoOn) {
  auto transports = transport::make_in_process_group(4);
  const auto errors = transport::run_ranks(4, [&](Rank rank) {
    ElasticCollectives group(*transports[rank], {});
    EXPECT_EQ(sum_of_ones(group), 4);
    EXPECT_EQ(group.present(), 4);
    if (rank == 2) {
      transports[2]->close();  // as a killed process does: without a word
      return;
    }
    EXPECT_EQ(sum_of_ones(group), 3);
    EXPECT_EQ(group.present(), 3);
    EXPECT_FALSE(group.is_present(2));
    const auto all =
        group.all_gather(membership::bytes_of("rank " + std::to_string(rank)), transport::far());
    EXPECT_EQ(membership::text_of(all[2]), "");
    EXPECT_EQ(membership::text_of(all[3]), "rank 3");
    const auto agreed = group.agree(rank == 3, 10 + rank, transport::far());
    EXPECT_TRUE(agreed.any);
    EXPECT_EQ(agreed.first, 10);
    EXPECT_TRUE(agreed.joined.empty());
    group.barrier(transport::far());
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

TEST(Elastic, WhoLeavesForAReasonEndsTheOthersWithIt) {
  auto transports = transport::make_in_process_group(3);
  const auto errors = transport::run_ranks(3, [&](Rank rank) {
    ElasticCollectives group(*transports[rank], {});
    group.barrier(transport::far());
    if (rank == 2) {
      group.leave("rank 2 failed: its disk is full");
      return;
    }
    group.barrier(transport::far());
  });
  EXPECT_NE(errors[0].find("its disk is full"), std::string::npos) << errors[0];
  EXPECT_NE(errors[1].find("its disk is full"), std::string::npos) << errors[1];
}

TEST(Elastic, TheFirstOnesReasonReachesThoseWhoComeLater) {
  auto transports = transport::make_in_process_group(3);
  const auto errors = transport::run_ranks(3, [&](Rank rank) {
    ElasticCollectives group(*transports[rank], {});
    group.barrier(transport::far());
    if (rank == 0) {
      group.leave("rank 0 failed: its disk is full");
      return;
    }
    std::this_thread::sleep_for(100ms);
    group.barrier(transport::far());
  });
  for (const Rank rank : {1, 2}) {
    EXPECT_NE(errors[rank].find("its disk is full"), std::string::npos) << errors[rank];
  }
}

TEST(Elastic, WhoIsNotLetInCannotEndTheOthers) {
  auto transports = transport::make_in_process_group(2);
  ElasticOptions options;
  options.introduce = [](Rank, const std::string&) -> std::string { throw ConfigError("not you"); };
  const auto errors = transport::run_ranks(2, [&](Rank rank) {
    if (rank == 1) {
      std::vector<bool> present;
      introduce_to(*transports[1], 0, "me", present, transport::far());
      return;
    }
    ElasticCollectives group(*transports[0], options);
    group.barrier(transport::far());
    EXPECT_EQ(group.present(), 1);
  });
  EXPECT_EQ(errors[0], "");
  EXPECT_NE(errors[1].find("not you"), std::string::npos) << errors[1];
}

TEST(Elastic, WhoWasNotIntroducedIsNotLetIn) {
  auto transports = transport::make_in_process_group(2);
  ElasticOptions options;
  options.introduce = [](Rank, const std::string&) -> std::string { throw ConfigError("not you"); };
  options.joined = [](Rank, const std::string&) { throw PeerError("it was let in"); };
  const auto send = [&](membership::ElasticKind kind) {
    transports[1]->send(0, kElasticTag, membership::elastic_message(kind, 0, {}), transport::far());
  };
  send(membership::ElasticKind::kReturn);
  send(membership::ElasticKind::kReady);
  ElasticCollectives group(*transports[0], options);
  group.barrier(transport::far());
  send(membership::ElasticKind::kReady);
  EXPECT_TRUE(group.agree(false, 0, transport::far()).joined.empty());
  EXPECT_EQ(group.present(), 1);
}

TEST(Elastic, WithoutWhoLedTheNextLeads) {
  auto transports = transport::make_in_process_group(4);
  const auto errors = transport::run_ranks(4, [&](Rank rank) {
    ElasticOptions options;
    options.has_ended = [](Rank) { return true; };
    ElasticCollectives group(*transports[rank], options);
    for (Rank lost = 0; lost < 4; ++lost) {
      EXPECT_EQ(sum_of_ones(group), 4 - lost);
      EXPECT_EQ(group.leader(), lost);
      EXPECT_EQ(group.agree(rank == 3, 10 + rank, transport::far()).first, 10 + lost);
      if (rank == lost) return transports[rank]->close();
    }
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

// A transport to which something happens.
class Troubled final : public transport::Transport {
 public:
  explicit Troubled(transport::Transport& inner)
      : transport::Transport(inner.rank(), inner.size()), inner_(inner) {}

  // Nothing goes to `rank` nor comes from it from now on.
  void cut(Rank rank) {
    const std::lock_guard lock(mutex_);
    cut_.insert(rank);
  }
  // The next messages reach those ranks, and then the process ends.
  void die_after(std::set<Rank> reached) { reached_ = std::move(reached); }
  // Messages that came from `rank` so far.
  int heard(Rank rank) const {
    const std::lock_guard lock(mutex_);
    const auto found = heard_.find(rank);
    return found == heard_.end() ? 0 : found->second;
  }

  void send(Rank to, transport::Tag tag, std::span<const std::byte> payload,
            Deadline deadline) override {
    if (is_cut(to)) throw PeerError("the link is cut");
    if (reached_ && !reached_->contains(to)) return;
    inner_.send(to, tag, payload, deadline);
    if (!reached_) return;
    reached_->erase(to);
    if (reached_->empty()) close();
  }
  transport::Message receive(Rank from, transport::Tag tag, Deadline deadline) override {
    while (!is_cut(from)) {
      try {
        return note(inner_.receive(from, tag, std::min(deadline, deadline_in(20ms))));
      } catch (const PeerError&) {
        if (Clock::now() >= deadline || !gone(from).empty() || !gone(rank()).empty()) throw;
      }
    }
    throw PeerError("the link is cut");
  }
  std::optional<transport::Message> receive_any(transport::Tag tag, Deadline deadline) override {
    auto message = inner_.receive_any(tag, deadline);
    while (message && is_cut(message->from)) message = inner_.receive_any(tag, deadline);
    if (message) note(*message);
    return message;
  }
  std::string gone(Rank peer) const override {
    return is_cut(peer) ? "is lost: the link is cut" : inner_.gone(peer);
  }
  void close() override { inner_.close(); }

 private:
  bool is_cut(Rank rank) const {
    const std::lock_guard lock(mutex_);
    return cut_.contains(rank);
  }

  transport::Message note(transport::Message message) {
    const std::lock_guard lock(mutex_);
    ++heard_[message.from];
    return message;
  }

  transport::Transport& inner_;
  mutable std::mutex mutex_;  // guards the next two lines
  std::set<Rank> cut_;
  std::map<Rank, int> heard_;
  std::optional<std::set<Rank>> reached_;
};

std::vector<std::unique_ptr<Troubled>> troubled(
    const std::vector<std::unique_ptr<transport::Transport>>& transports) {
  std::vector<std::unique_ptr<Troubled>> all;
  for (const auto& one : transports) all.push_back(std::make_unique<Troubled>(*one));
  return all;
}

TEST(Elastic, AnAnswerThatOnlySomeGotBeforeWhoLedWasLostReachesAll) {
  for (const std::set<Rank>& reached : {std::set<Rank>{1}, {2}, {1, 3}, {2, 3}, {3}}) {
    auto inner = transport::make_in_process_group(4);
    auto transports = troubled(inner);
    const auto errors = transport::run_ranks(4, [&](Rank rank) {
      ElasticCollectives group(*transports[rank], {});
      EXPECT_EQ(sum_of_ones(group), 4);
      if (rank == 0) transports[0]->die_after(reached);
      const auto all =
          group.all_gather(membership::bytes_of("rank " + std::to_string(rank)), transport::far());
      for (Rank other = 0; other < 4; ++other) {
        EXPECT_EQ(membership::text_of(all[other]), "rank " + std::to_string(other));
      }
      EXPECT_EQ(group.leader(), 0);
      if (rank == 0) return;
      std::this_thread::sleep_for(rank * 10ms);
      EXPECT_EQ(sum_of_ones(group), 3);
      EXPECT_EQ(group.leader(), 1);
      group.barrier(transport::far());
    });
    for (const std::string& error : errors) EXPECT_EQ(error, "");
  }
}

// Two sides of a network that has come apart between them; which ranks go on.
std::set<Rank> who_goes_on(int size, const std::set<Rank>& side) {
  auto inner = transport::make_in_process_group(size);
  auto transports = troubled(inner);
  std::vector<int> went_on(static_cast<std::size_t>(size), 0);
  transport::run_ranks(size, [&](Rank rank) {
    ElasticCollectives group(*transports[rank], {});
    group.barrier(transport::far());
    for (Rank other = 0; other < size; ++other) {
      if (side.contains(rank) != side.contains(other)) transports[rank]->cut(other);
    }
    try {
      for (int i = 0; i < 3; ++i) group.barrier(transport::far());
      went_on[rank] = 1;
    } catch (const CutOffError&) {
      transports[rank]->close();
    }
  });
  std::set<Rank> ranks;
  for (Rank rank = 0; rank < size; ++rank) {
    if (went_on[rank] != 0) ranks.insert(rank);
  }
  return ranks;
}

TEST(Elastic, OfTwoSidesThatLostEachOtherOneGoesOn) {
  EXPECT_EQ(who_goes_on(5, {0, 1}), (std::set<Rank>{2, 3, 4}));
  EXPECT_EQ(who_goes_on(5, {0, 1, 4}), (std::set<Rank>{0, 1, 4}));
  EXPECT_EQ(who_goes_on(4, {0, 3}), (std::set<Rank>{0, 3}));
  EXPECT_EQ(who_goes_on(4, {0}), (std::set<Rank>{1, 2, 3}));
  EXPECT_EQ(who_goes_on(2, {0}), (std::set<Rank>{0}));
}

TEST(Elastic, APartOfOneThatIsLostDoesNotMakeTheSmallerSideWhole) {
  auto inner = transport::make_in_process_group(4);
  auto transports = troubled(inner);
  std::vector<int> answers(4, 0);
  std::atomic<bool> is_watched = false;
  std::atomic<bool> is_cut = false;
  transport::run_ranks(4, [&](Rank rank) {
    ElasticCollectives group(*transports[rank], {});
    group.barrier(transport::far());
    // Rank 0 has heard of rank 1 when it loses all three.
    std::jthread cut;
    if (rank == 0) {
      cut = std::jthread([&, before = transports[0]->heard(1)] {
        while (transports[0]->heard(1) == before) std::this_thread::sleep_for(1ms);
        for (const Rank other : {1, 2, 3}) {
          transports[0]->cut(other);
          transports[other]->cut(0);
        }
        is_cut = true;
        is_cut.notify_all();
      });
      is_watched = true;
      is_watched.notify_all();
    } else {
      (rank == 1 ? is_watched : is_cut).wait(false);
    }
    try {
      for (; answers[rank] < 4; ++answers[rank]) group.barrier(transport::far());
    } catch (const CutOffError&) {
      transports[rank]->close();
    }
  });
  EXPECT_EQ(answers, (std::vector<int>{0, 4, 4, 4}));
}

TEST(Elastic, WhoLeadsShowsItselfOnlyOnceItIsSure) {
  auto transports = transport::make_in_process_group(2);
  const auto errors = transport::run_ranks(2, [&](Rank rank) {
    bool listens = false;
    ElasticOptions options;
    options.leads = [&] { listens = true; };
    options.has_ended = [&](Rank) { return !listens; };  // at the same address
    ElasticCollectives group(*transports[rank], options);
    group.barrier(transport::far());
    if (rank == 0) return transports[0]->close();
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(group.agree(false, 0, transport::far()).any);
    EXPECT_EQ(group.leader(), 1);
    EXPECT_TRUE(listens);
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

TEST(Elastic, WhoAloneHasLostTheOneThatLeadsIsTold) {
  for (const Rank alone : {1, 2, 3}) {
    auto inner = transport::make_in_process_group(4);
    auto transports = troubled(inner);
    const auto errors = transport::run_ranks(4, [&](Rank rank) {
      ElasticCollectives group(*transports[rank], {});
      group.barrier(transport::far());
      if (rank == alone) transports[rank]->cut(0);
      if (rank == 0) transports[rank]->cut(alone);
      if (rank == alone) {
        EXPECT_THROW(group.barrier(transport::far()), CutOffError);
        return;
      }
      for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(sum_of_ones(group), 3);
        EXPECT_EQ(group.leader(), 0);
        std::this_thread::sleep_for(5ms);
      }
    });
    for (const std::string& error : errors) EXPECT_EQ(error, "");
  }
}

TEST(Elastic, SaysWhoIsLateAtTheDeadline) {
  auto transports = transport::make_in_process_group(3);
  const auto errors = transport::run_ranks(3, [&](Rank rank) {
    ElasticCollectives group(*transports[rank], {});
    if (rank == 2) {
      std::this_thread::sleep_for(600ms);
      return;
    }
    group.barrier(deadline_in(rank == 0 ? 200ms : 10s));
  });
  EXPECT_NE(errors[0].find("rank 2"), std::string::npos) << errors[0];
  EXPECT_NE(errors[1].find("rank 2"), std::string::npos) << errors[1];
}

// A process and what it has of the group.
struct Member {
  std::unique_ptr<transport::TcpNode> node;
  std::unique_ptr<transport::TcpTransport> transport;
};

// Of three processes one ends and comes back, to who leads then.
void end_and_come_back(Rank lost) {
  const Rank leader = lost == 0 ? 1 : 0;
  const Rank third = 3 - lost - leader;
  transport::TcpNodeOptions options;
  options.job = network::random_job_id();
  options.size = 3;
  transport::TcpLane lane;
  lane.returns = true;
  std::vector<Member> members(3);
  for (options.rank = 0; options.rank < 3; ++options.rank) {
    members[options.rank].node = std::make_unique<transport::TcpNode>(options);
    lane.members.push_back(options.rank);
    lane.addresses.push_back(members[options.rank].node->address());
  }
  const network::Address meeting = lane.addresses[0];
  std::vector<Rank> seen(3, -1);
  std::vector<std::string> heard(3);
  std::string entry;
  const auto go_on_until_it_is_back = [&](Rank rank, ElasticCollectives& group) {
    for (int step = 0; step < 10000; ++step) {
      const auto agreed = group.agree(false, step, transport::far());
      if (agreed.joined.empty()) {
        std::this_thread::sleep_for(1ms);
        continue;
      }
      EXPECT_EQ(agreed.joined, std::vector<Rank>{lost});
      if (rank == leader)
        group.welcome(lost, membership::bytes_of("step " + std::to_string(step)), transport::far());
      seen[rank] = static_cast<Rank>(agreed.first);
      break;
    }
    EXPECT_EQ(sum_of_ones(group), 3);
    EXPECT_EQ(group.leader(), leader);
  };
  const auto come_back = [&] {
    transport::TcpNodeOptions own = options;
    own.rank = lost;
    transport::TcpNode node(own);
    transport::TcpLane late = lane;
    late.late = true;
    const auto transport = node.connect(late, transport::far());
    EXPECT_EQ(transport->call_anyone(meeting, transport::far()), leader);
    std::vector<bool> present;
    EXPECT_EQ(introduce_to(*transport, leader, "me again", present, transport::far()),
              "welcome, me again");
    std::vector<bool> others(3, true);
    others[lost] = false;
    EXPECT_EQ(present, others);
    EXPECT_FALSE(transport->gone(third).empty());
    EXPECT_TRUE(transport->call(third, lane.addresses[third], transport::far()));
    EXPECT_EQ(transport->gone(third), "");
    ElasticCollectives group(*transport, {}, leader);
    entry = membership::text_of(group.enter(transport::far()));
    EXPECT_EQ(sum_of_ones(group), 3);
    EXPECT_EQ(group.present(), 3);
    EXPECT_EQ(group.leader(), leader);
  };
  const auto errors = transport::run_ranks(3, [&](Rank rank) {
    Member& own = members[rank];
    own.transport = own.node->connect(lane, transport::far());
    ElasticOptions elastic;
    elastic.introduce = [](Rank, const std::string& text) { return "welcome, " + text; };
    elastic.joined = [&, rank](Rank, const std::string& text) { heard[rank] = text; };
    bool at_meeting = rank == 0;
    elastic.leads = [&] { at_meeting = at_meeting || own.node->listen_also(meeting); };
    std::optional<ElasticCollectives> group(std::in_place, *own.transport, elastic);
    EXPECT_EQ(sum_of_ones(*group), 3);
    if (rank != lost) return go_on_until_it_is_back(rank, *group);
    group.reset();
    own.transport.reset();
    own.node.reset();
    come_back();
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  EXPECT_EQ(seen[leader], seen[third]);
  EXPECT_EQ(heard[leader], "me again");
  EXPECT_EQ(heard[third], "me again");
  EXPECT_EQ(entry, "step " + std::to_string(seen[leader]));
}

TEST(Elastic, WhoComesBackIsLetInByAllAtOnce) { end_and_come_back(1); }

TEST(Elastic, WhoLedComesBackToWhoLeadsNow) { end_and_come_back(0); }

}  // namespace
}  // namespace cohort::collectives
