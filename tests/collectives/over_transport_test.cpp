#include "collectives/over_transport.h"

#include <gtest/gtest.h>

#include <memory>

#include "collectives/metered_group.h"
#include "transport/faulty.h"
#include "transport/in_process.h"
#include "transport/rank_threads.h"

namespace cohort::collectives {
namespace {

using namespace std::chrono_literals;

// Runs one operation on every rank.
template <class Operation>
void run(MeteredGroup& group, Operation operation) {
  const int size = static_cast<int>(group.transports().size());
  const auto errors = transport::run_ranks(size, [&](Rank rank) {
    OverTransport own(group.transports()[rank]);
    operation(own);
  });
  EXPECT_EQ(errors, std::vector<std::string>(size));
}

MeteredGroup::Count both_ways(std::uint64_t messages, std::uint64_t bytes) {
  return {bytes, bytes, messages, messages};
}

std::uint64_t log2_up(std::uint64_t size) {
  std::uint64_t rounds = 0;
  while ((std::uint64_t{1} << rounds) < size) ++rounds;
  return rounds;
}

class OverTransportCost : public testing::TestWithParam<int> {
 protected:
  const std::uint64_t ranks_ = static_cast<std::uint64_t>(GetParam());
};

TEST_P(OverTransportCost, IsWhatTheHeaderPromisesForALargeSum) {
  constexpr std::size_t kNumel = 100003;
  MeteredGroup group(GetParam());
  run(group, [&](Collectives& own) {
    std::vector<float> values(kNumel, 1);
    own.all_reduce(values, transport::far());
  });
  EXPECT_EQ(group.total(), both_ways(2 * ranks_ * (ranks_ - 1), 2 * (ranks_ - 1) * kNumel * 4));
  for (Rank rank = 0; rank < GetParam(); ++rank) {
    EXPECT_EQ(group.of(rank).messages_sent, 2 * (ranks_ - 1));
    const std::uint64_t largest_chunk = (kNumel + ranks_ - 1) / ranks_ * 4;
    EXPECT_LE(group.of(rank).bytes_sent, 2 * (ranks_ - 1) * largest_chunk);
  }
}

TEST_P(OverTransportCost, IsWhatTheHeaderPromisesForASmallSum) {
  MeteredGroup group(GetParam());
  run(group, [&](Collectives& own) {
    std::vector<float> values(OverTransport::kRingBytes / sizeof(float) - 1, 1);
    own.all_reduce(values, transport::far());
  });
  EXPECT_EQ(group.total(),
            both_ways(2 * (ranks_ - 1), 2 * (ranks_ - 1) * (OverTransport::kRingBytes - 4)));
}

TEST_P(OverTransportCost, IsWhatTheHeaderPromisesForTheOthers) {
  MeteredGroup gathering(GetParam());
  run(gathering, [&](Collectives& own) { own.all_gather(Bytes(1000), transport::far()); });
  EXPECT_EQ(gathering.total(), both_ways(ranks_ * (ranks_ - 1), ranks_ * (ranks_ - 1) * 1000));

  MeteredGroup broadcasting(GetParam());
  run(broadcasting, [&](Collectives& own) {
    Bytes bytes(1000);
    own.broadcast(bytes, own.size() - 1, transport::far());
  });
  EXPECT_EQ(broadcasting.total(), both_ways(ranks_ - 1, (ranks_ - 1) * 1000));

  MeteredGroup barrier(GetParam());
  run(barrier, [&](Collectives& own) { own.barrier(transport::far()); });
  EXPECT_EQ(barrier.total(), both_ways(ranks_ * log2_up(ranks_), 0));
}

INSTANTIATE_TEST_SUITE_P(Ranks, OverTransportCost, testing::Values(1, 2, 3, 4, 5, 8));

TEST(OverTransport, SumsSmallVectorsInTheOrderOfRanks) {
  // 1e8 + 1 - 1e8 is 0 in float32 when added from the left; other orders give 1.
  const float inputs[] = {1e8F, 1.0F, -1e8F};
  MeteredGroup group(3);
  run(group, [&](Collectives& own) {
    std::vector<float> values{inputs[own.rank()]};
    own.all_reduce(values, transport::far());
    EXPECT_EQ(values[0], 0.0F);
  });
}

TEST(OverTransport, NeverGivesWrongAnswersWhenMessagesAreLost) {
  int finished = 0;
  int failed = 0;
  for (Seed seed = 0; seed < 20; ++seed) {
    auto transports = transport::make_in_process_group(4);
    const auto errors = transport::run_ranks(4, [&](Rank rank) {
      const transport::FaultPlan plan{.seed = seed, .drop_probability = 0.01};
      OverTransport own(
          std::make_shared<transport::FaultyTransport>(std::move(transports[rank]), plan));
      for (int round = 0; round < 3; ++round) {
        std::vector<float> values(6000, static_cast<float>(1 << (4 * round + rank)));
        own.all_reduce(values, deadline_in(100ms));
        EXPECT_EQ(values, std::vector<float>(6000, static_cast<float>(15 << (4 * round))));
        const auto all = own.all_gather(Bytes(1, std::byte(10 * round + rank)), deadline_in(100ms));
        for (Rank from = 0; from < 4; ++from) {
          EXPECT_EQ(all[from], Bytes(1, std::byte(10 * round + from)));
        }
      }
    });
    for (const std::string& error : errors) ++(error.empty() ? finished : failed);
  }
  EXPECT_GT(finished, 0) << "every run met a fault: nothing was compared";
  EXPECT_GT(failed, 0) << "no run met a fault";
}

}  // namespace
}  // namespace cohort::collectives
