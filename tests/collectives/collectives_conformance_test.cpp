// One contract over every registered collectives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>

#include "collectives/collectives.h"
#include "collectives/inputs.h"
#include "collectives/registry.h"
#include "core/patience.h"
#include "transport/rank_threads.h"

namespace cohort::collectives {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

constexpr int kSizes[] = {1, 2, 3, 4, 8};

Bytes pattern(std::size_t length, int salt) {
  Bytes bytes(length);
  for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::byte>(i * 31 + salt);
  return bytes;
}

class CollectivesConformance : public testing::TestWithParam<CollectivesRegistry::Entry> {
 protected:
  using Group = std::vector<std::unique_ptr<Collectives>>;
  static Group make(int size) { return std::move(GetParam().make(size)->members); }

  static std::vector<std::vector<float>> reduced(int size, std::size_t numel) {
    Group group = make(size);
    std::vector<std::vector<float>> results(size);
    const auto errors = transport::run_ranks(size, [&](Rank rank) {
      results[rank] = input_of(rank, numel);
      group[rank]->all_reduce(results[rank], transport::far());
    });
    EXPECT_EQ(errors, std::vector<std::string>(size));
    return results;
  }
};

TEST_P(CollectivesConformance, SumsToTheDoublePrecisionSumWithTheSameBitsEverywhere) {
  for (const int size : kSizes) {
    for (const std::size_t numel :
         {std::size_t{0}, std::size_t{1}, std::size_t{7}, static_cast<std::size_t>(size - 1),
          std::size_t{1000}, std::size_t{1000000}}) {
      const auto results = reduced(size, numel);
      std::vector<double> expected(numel);
      for (Rank rank = 0; rank < size; ++rank) {
        const auto input = input_of(rank, numel);
        for (std::size_t i = 0; i < numel; ++i) expected[i] += input[i];
      }
      double worst = 0;
      for (std::size_t i = 0; i < numel; ++i) {
        worst = std::max(worst, std::abs(results[0][i] - expected[i]));
      }
      // Each of size - 1 additions of numbers below `size` rounds by at most half a unit.
      EXPECT_LE(worst, size * size * 0x1.0p-24) << size << " ranks, " << numel << " floats";
      for (Rank rank = 1; rank < size; ++rank) {
        EXPECT_TRUE(numel == 0 || std::memcmp(results[0].data(), results[rank].data(),
                                              numel * sizeof(float)) == 0)
            << size << " ranks, " << numel << " floats, rank " << rank;
      }
    }
  }
}

TEST_P(CollectivesConformance, GivesTheSameBitsInEveryRun) {
  for (const std::size_t numel : {std::size_t{100}, std::size_t{20001}}) {
    const auto first = reduced(4, numel);
    for (int run = 0; run < 3; ++run) EXPECT_EQ(reduced(4, numel), first);
  }
}

TEST_P(CollectivesConformance, RepeatsManyOperationsOfChangingSize) {
  constexpr int kRounds = 200;
  Group group = make(4);
  const auto errors = transport::run_ranks(4, [&](Rank rank) {
    for (int round = 0; round < kRounds; ++round) {
      std::vector<float> values((round * 37) % 50 * (round % 5 == 0 ? 200 : 1),
                                static_cast<float>(rank + round));
      group[rank]->all_reduce(values, transport::far());
      for (const float value : values) ASSERT_EQ(value, 6 + 4 * round);
      Bytes word = pattern(4, rank == round % 4 ? round : 0);
      group[rank]->broadcast(word, round % 4, transport::far());
      ASSERT_EQ(word, pattern(4, round));
    }
  });
  EXPECT_EQ(errors, std::vector<std::string>(4));
}

TEST_P(CollectivesConformance, GathersUnequalLengthsInTheOrderOfRanks) {
  for (const int size : kSizes) {
    Group group = make(size);
    const auto errors = transport::run_ranks(size, [&](Rank rank) {
      const auto all = group[rank]->all_gather(pattern(rank * 1000, rank), transport::far());
      ASSERT_EQ(all.size(), static_cast<std::size_t>(size));
      for (Rank from = 0; from < size; ++from) EXPECT_EQ(all[from], pattern(from * 1000, from));
    });
    EXPECT_EQ(errors, std::vector<std::string>(size));
  }
}

TEST_P(CollectivesConformance, BroadcastsFromEveryRoot) {
  for (const int size : kSizes) {
    Group group = make(size);
    const auto errors = transport::run_ranks(size, [&](Rank rank) {
      for (Rank root = 0; root < size; ++root) {
        for (const std::size_t length : {0, 1, 100000}) {
          Bytes bytes = rank == root ? pattern(length, root + 1) : Bytes(length);
          group[rank]->broadcast(bytes, root, transport::far());
          EXPECT_TRUE(bytes == pattern(length, root + 1));
        }
      }
    });
    EXPECT_EQ(errors, std::vector<std::string>(size));
  }
}

TEST_P(CollectivesConformance, HoldsEveryRankAtTheBarrierUntilAllHaveCome) {
  for (const int size : kSizes) {
    Group group = make(size);
    std::atomic<int> come{0};
    transport::run_ranks(size, [&](Rank rank) {
      for (int round = 1; round <= 50; ++round) {
        ++come;
        group[rank]->barrier(transport::far());
        EXPECT_GE(come.load(), round * size);
        group[rank]->barrier(transport::far());
      }
    });
  }
}

// The operations, each as a call that rank `rank` makes.
using Operation = void (*)(Collectives&, Deadline);
const std::pair<const char*, Operation> kOperations[] = {
    {"small all_reduce",
     [](Collectives& own, Deadline deadline) {
       std::vector<float> values(10);
       own.all_reduce(values, deadline);
     }},
    {"large all_reduce",
     [](Collectives& own, Deadline deadline) {
       std::vector<float> values(50000);
       own.all_reduce(values, deadline);
     }},
    {"all_gather", [](Collectives& own, Deadline deadline) { own.all_gather(Bytes(5), deadline); }},
    {"barrier", [](Collectives& own, Deadline deadline) { own.barrier(deadline); }},
};

TEST_P(CollectivesConformance, FailsAtTheDeadlineWhenARankNeverComes) {
  for (const auto& [name, operation] : kOperations) {
    Group group = make(4);
    const auto start = Clock::now();
    const auto errors = transport::run_ranks(4, [&, operation = operation](Rank rank) {
      if (rank != 2) operation(*group[rank], deadline_in(100ms));
    });
    EXPECT_LT(seconds_between(start, Clock::now()), patiently(5.0)) << name;
    for (const Rank rank : {0, 1, 3}) EXPECT_THAT(errors[rank], HasSubstr("rank")) << name;
    EXPECT_TRUE(errors[0].find("rank 2") != errors[0].npos ||
                errors[3].find("rank 2") != errors[3].npos)
        << name << ": " << errors[0] << "; " << errors[3];
    // Broken for good, and at once.
    EXPECT_THROW(group[0]->barrier(transport::far()), PeerError) << name;
  }
}

TEST_P(CollectivesConformance, FailsWhenARankIsDestroyed) {
  for (const auto& [name, operation] : kOperations) {
    Group group = make(3);
    const auto start = Clock::now();
    const auto errors = transport::run_ranks(3, [&, operation = operation](Rank rank) {
      if (rank == 1) {
        group[1].reset();
      } else {
        operation(*group[rank], deadline_in(1s));
      }
    });
    EXPECT_LT(seconds_between(start, Clock::now()), patiently(15.0)) << name;
    for (const Rank rank : {0, 2}) EXPECT_NE(errors[rank], "") << name;
    EXPECT_TRUE(errors[0].find("rank 1") != errors[0].npos ||
                errors[2].find("rank 1") != errors[2].npos)
        << name << ": " << errors[0] << "; " << errors[2];
  }
}

TEST_P(CollectivesConformance, FinishesForTheOthersWhenARankLeavesRightAfter) {
  for (int round = 0; round < 20; ++round) {
    Group group = make(3);
    const auto errors = transport::run_ranks(3, [&](Rank rank) {
      std::vector<float> values(20000, 1.0F);
      group[rank]->all_reduce(values, transport::far());
      EXPECT_EQ(values.back(), 3.0F);
      group[rank].reset();
    });
    EXPECT_EQ(errors, std::vector<std::string>(3));
  }
}

TEST_P(CollectivesConformance, RefusesUnequalLengthsAndUnequalOperations) {
  for (const std::size_t base : {std::size_t{10}, std::size_t{50000}}) {
    Group group = make(3);
    const auto errors = transport::run_ranks(3, [&](Rank rank) {
      std::vector<float> values(base + (rank == 1 ? 5 : 0));
      group[rank]->all_reduce(values, deadline_in(300ms));
    });
    EXPECT_GT(std::count_if(errors.begin(), errors.end(), [](const auto& e) { return !e.empty(); }),
              0)
        << base;
  }
  Group group = make(2);
  const auto errors = transport::run_ranks(2, [&](Rank rank) {
    if (rank == 0) group[0]->barrier(deadline_in(300ms));
    if (rank == 1) group[1]->all_gather(Bytes(3), deadline_in(300ms));
  });
  EXPECT_NE(errors[0], "");
  EXPECT_NE(errors[1], "");
}

TEST_P(CollectivesConformance, TellsWaitingPeersWhyARankLeft) {
  for (const auto& [name, operation] : kOperations) {
    Group group = make(4);
    const auto start = Clock::now();
    const auto errors = transport::run_ranks(4, [&, operation = operation](Rank rank) {
      if (rank == 2) {
        std::this_thread::sleep_for(50ms);
        group[2]->leave("its disk is full");
      } else {
        operation(*group[rank], transport::far());
      }
    });
    EXPECT_LT(seconds_between(start, Clock::now()), patiently(10.0)) << name;
    for (const Rank rank : {0, 1, 3}) {
      EXPECT_THAT(errors[rank], HasSubstr("rank 2 left: its disk is full")) << name;
    }
    EXPECT_THROW(group[2]->barrier(transport::far()), PeerError) << name;
  }
}

TEST_P(CollectivesConformance, LeavesFromAnotherThreadWhileItWaitsItself) {
  Group group = make(3);
  const auto errors = transport::run_ranks(4, [&](Rank thread) {
    if (thread < 2) group[thread]->barrier(transport::far());  // rank 2 never comes
    if (thread == 3) {
      std::this_thread::sleep_for(50ms);
      group[0]->leave("interrupted");
      group[0]->leave("another reason");
    }
  });
  EXPECT_NE(errors[0], "");
  EXPECT_THAT(errors[1], HasSubstr("interrupted"));
  EXPECT_THAT(errors[1], Not(HasSubstr("another reason")));
}

TEST_P(CollectivesConformance, CountsAsManyBytesSentAsReceived) {
  for (const int size : kSizes) {
    for (const std::size_t numel : {std::size_t{10}, std::size_t{100003}}) {
      Group group = make(size);
      transport::run_ranks(size, [&](Rank rank) {
        std::vector<float> values(numel);
        group[rank]->all_reduce(values, transport::far());
        group[rank]->all_gather(Bytes(rank * 100), transport::far());
        Bytes bytes(1000);
        group[rank]->broadcast(bytes, size - 1, transport::far());
        group[rank]->barrier(transport::far());
      });
      Traffic total;
      for (const auto& member : group) {
        total.sent += member->traffic().sent;
        total.received += member->traffic().received;
      }
      EXPECT_EQ(total.sent, total.received) << size << " ranks, " << numel << " floats";
      if (size == 1) {
        EXPECT_EQ(total.sent, 0U);
      } else {
        // No way of summing moves less, and gather and broadcast have a length each.
        const std::uint64_t others = size - 1;
        EXPECT_GE(total.sent, others * (2 * numel * sizeof(float) + size * others * 50 + 1000));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, CollectivesConformance,
                         testing::ValuesIn(collectives().entries()), [](const auto& test) {
                           std::string name = test.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(CollectivesRegistry, RefusesAnEmptyGroup) {
  for (const auto& entry : collectives().entries()) EXPECT_THROW(entry.make(0), ConfigError);
}

}  // namespace
}  // namespace cohort::collectives
