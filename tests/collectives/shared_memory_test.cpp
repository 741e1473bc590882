#include "collectives/shared_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "transport/rank_threads.h"

namespace cohort::collectives {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

TEST(SharedMemory, SaysWhatTheMissingRankWasDoing) {
  MemberNames names;
  for (int rank = 0; rank < 3; ++rank) names.activities.push_back(std::make_shared<Activity>());
  names.activities[1]->set(17, Phase::kLoading);
  const auto group = make_shared_memory_group(3, names);
  const auto errors = transport::run_ranks(3, [&](Rank rank) {
    std::vector<float> values(10);
    if (rank != 1) group[rank]->all_reduce(values, deadline_in(100ms));
  });
  for (const Rank rank : {0, 2}) {
    EXPECT_THAT(errors[rank], HasSubstr("rank 1 has not come to all_reduce"));
    EXPECT_THAT(errors[rank], HasSubstr("it was at step 17, loading data"));
    EXPECT_THAT(errors[rank], Not(HasSubstr("rank 2 has")));
  }
}

TEST(SharedMemory, CallsMembersByTheirRanksInTheLargerGroup) {
  MemberNames names;
  names.ranks = {4, 5};
  const auto group = make_shared_memory_group(2, names);
  const auto errors = transport::run_ranks(2, [&](Rank rank) {
    if (rank == 0) group[0]->barrier(transport::far());
    if (rank == 1) group[1]->leave("out of memory");
  });
  EXPECT_EQ(errors[0], "rank 5 left: out of memory");
}

TEST(SharedMemory, SumsInTheOrderOfRanksWhateverTheLength) {
  // 1e8 + 1 - 1e8 is 0 in float32 when added from the left; other orders give 1.
  const float inputs[] = {1e8F, 1.0F, -1e8F};
  for (const std::size_t numel : {std::size_t{1}, std::size_t{4097}, std::size_t{100000}}) {
    const auto group = make_shared_memory_group(3);
    transport::run_ranks(3, [&](Rank rank) {
      std::vector<float> values(numel, inputs[rank]);
      group[rank]->all_reduce(values, transport::far());
      EXPECT_EQ(values, std::vector<float>(numel, 0.0F));
    });
  }
}

}  // namespace
}  // namespace cohort::collectives
