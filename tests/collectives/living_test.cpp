// Groups that lose ranks and get them back.
#include "collectives/living.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "transport/in_process.h"
#include "transport/rank_threads.h"
#include "transport/tcp.h"

namespace cohort {
namespace {

using namespace std::chrono_literals;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

float sum_of_ones(LivingCollectives& group) {
  float value = 1;
  group.all_reduce({&value, 1}, far());
  return value;
}

TEST(Living, WhoIsLostIsLeftOutAndTheOthersGoOn) {
  auto transports = make_in_process_group(4);
  const auto errors = run_ranks(4, [&](Rank rank) {
    LivingCollectives group(*transports[rank], {});
    EXPECT_EQ(sum_of_ones(group), 4);
    EXPECT_EQ(group.present(), 4);
    if (rank == 2) {
      transports[2]->close();  // as a killed process does: without a word
      return;
    }
    EXPECT_EQ(sum_of_ones(group), 3);
    EXPECT_EQ(group.present(), 3);
    EXPECT_FALSE(group.is_present(2));
    const auto all = group.all_gather(bytes_of("rank " + std::to_string(rank)), far());
    EXPECT_EQ(text_of(all[2]), "");
    EXPECT_EQ(text_of(all[3]), "rank 3");
    const auto agreed = group.agree(rank == 3, 10 + rank, far());
    EXPECT_TRUE(agreed.any);
    EXPECT_EQ(agreed.first, 10);
    EXPECT_TRUE(agreed.joined.empty());
    group.barrier(far());
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

TEST(Living, WhoLeavesForAReasonEndsTheOthersWithIt) {
  auto transports = make_in_process_group(3);
  const auto errors = run_ranks(3, [&](Rank rank) {
    LivingCollectives group(*transports[rank], {});
    group.barrier(far());
    if (rank == 2) {
      group.leave("rank 2 failed: its disk is full");
      return;
    }
    group.barrier(far());
  });
  EXPECT_NE(errors[0].find("its disk is full"), std::string::npos) << errors[0];
  EXPECT_NE(errors[1].find("its disk is full"), std::string::npos) << errors[1];
}

TEST(Living, TheFirstOnesReasonReachesThoseWhoComeLater) {
  auto transports = make_in_process_group(3);
  const auto errors = run_ranks(3, [&](Rank rank) {
    LivingCollectives group(*transports[rank], {});
    group.barrier(far());
    if (rank == 0) {
      group.leave("rank 0 failed: its disk is full");
      return;
    }
    std::this_thread::sleep_for(100ms);
    group.barrier(far());
  });
  for (const Rank rank : {1, 2}) {
    EXPECT_NE(errors[rank].find("its disk is full"), std::string::npos) << errors[rank];
  }
}

TEST(Living, WhoIsNotLetInCannotEndTheOthers) {
  auto transports = make_in_process_group(2);
  LivingOptions options;
  options.introduce = [](Rank, const std::string&) -> std::string { throw ConfigError("not you"); };
  const auto errors = run_ranks(2, [&](Rank rank) {
    if (rank == 1) {
      std::vector<bool> present;
      introduce_to_first(*transports[1], "me", present, far());
      return;
    }
    LivingCollectives group(*transports[0], options);
    group.barrier(far());
    EXPECT_EQ(group.present(), 1);
  });
  EXPECT_EQ(errors[0], "");
  EXPECT_NE(errors[1].find("not you"), std::string::npos) << errors[1];
}

TEST(Living, WithoutTheFirstTheOthersAreCutOff) {
  auto transports = make_in_process_group(3);
  run_ranks(3, [&](Rank rank) {
    LivingCollectives group(*transports[rank], {});
    group.barrier(far());
    if (rank == 0) {
      transports[0]->close();
      return;
    }
    EXPECT_THROW(group.barrier(far()), CutOffError);
  });
}

TEST(Living, SaysWhoIsLateAtTheDeadline) {
  auto transports = make_in_process_group(3);
  const auto errors = run_ranks(3, [&](Rank rank) {
    LivingCollectives group(*transports[rank], {});
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
  std::unique_ptr<TcpNode> node;
  std::unique_ptr<TcpTransport> transport;
};

TEST(Living, WhoComesBackIsLetInByAllAtOnce) {
  TcpNodeOptions options;
  options.job = random_job_id();
  options.size = 3;
  TcpLane lane;
  lane.returns = true;
  std::vector<Member> members(3);
  for (options.rank = 0; options.rank < 3; ++options.rank) {
    members[options.rank].node = std::make_unique<TcpNode>(options);
    lane.members.push_back(options.rank);
    lane.addresses.push_back(members[options.rank].node->address());
  }
  std::vector<Rank> seen(3, -1);
  std::string entry;
  const auto go_on_until_it_is_back = [&](Rank rank, LivingCollectives& group) {
    for (int step = 0; step < 10000; ++step) {
      const auto agreed = group.agree(false, step, far());
      if (agreed.joined.empty()) {
        std::this_thread::sleep_for(1ms);
        continue;
      }
      EXPECT_EQ(agreed.joined, std::vector<Rank>{1});
      if (rank == 0) group.welcome(1, bytes_of("step " + std::to_string(step)), far());
      seen[rank] = static_cast<Rank>(agreed.first);
      break;
    }
    EXPECT_EQ(sum_of_ones(group), 3);
  };
  const auto come_back = [&] {
    TcpNodeOptions own = options;
    own.rank = 1;
    TcpNode node(own);
    TcpLane late = lane;
    late.late = true;
    const auto transport = node.connect(late, far());
    std::vector<bool> present;
    EXPECT_EQ(introduce_to_first(*transport, "me again", present, far()), "welcome, me again");
    EXPECT_EQ(present, (std::vector<bool>{true, false, true}));
    EXPECT_FALSE(transport->gone(2).empty());
    EXPECT_TRUE(transport->call(2, lane.addresses[2], far()));
    EXPECT_EQ(transport->gone(2), "");
    LivingCollectives group(*transport, {}, /*returns=*/true);
    entry = text_of(group.enter(far()));
    EXPECT_EQ(sum_of_ones(group), 3);
    EXPECT_EQ(group.present(), 3);
  };
  const auto errors = run_ranks(3, [&](Rank rank) {
    Member& own = members[rank];
    own.transport = own.node->connect(lane, far());
    const auto welcome = [](Rank, const std::string& text) { return "welcome, " + text; };
    LivingCollectives group(*own.transport, {welcome});
    EXPECT_EQ(sum_of_ones(group), 3);
    if (rank != 1) return go_on_until_it_is_back(rank, group);
    own.transport.reset();
    own.node.reset();
    come_back();
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  EXPECT_EQ(seen[0], seen[2]);
  EXPECT_EQ(entry, "step " + std::to_string(seen[0]));
}

}  // namespace
}  // namespace cohort
