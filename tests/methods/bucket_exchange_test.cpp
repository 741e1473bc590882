#include "methods/bucket_exchange.h"

#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/patience.h"
#include "methods/group.h"

namespace cohort::methods {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

TEST(BucketExchange, SumsEveryRangeAndNothingElse) {
  constexpr int kRanks = 3;
  Channels channels(kRanks);
  run_group(channels, [&](Rank rank) {
    const auto gradients = channels.options(rank).gradients;
    BucketExchange exchange(*gradients, false, seconds(60));
    const at::Tensor arena = at::full({100000}, static_cast<float>(rank + 1));
    for (int step = 0; step < 3; ++step) {
      arena.fill_(rank + 1);
      exchange.wait();  // nothing submitted: nothing to wait for
      exchange.submit(arena, {60000, 40000});
      exchange.submit(arena, {10, 1});
      exchange.submit(arena, {20, 30000});
      exchange.wait();
      const float* values = arena.data_ptr<float>();
      for (std::int64_t i = 0; i < arena.numel(); ++i) {
        const bool summed = i >= 60000 || i == 10 || (i >= 20 && i < 30020);
        ASSERT_EQ(values[i], summed ? 6.0F : static_cast<float>(rank + 1)) << i;
      }
    }
  });
}

TEST(BucketExchange, AnErrorReachesTheOneWhoWaits) {
  Channels channels(2);
  const auto errors = transport::run_ranks(2, [&](Rank rank) {
    if (rank == 1) {
      channels.leave(1, "rank 1 ran out of patience");
      return;
    }
    BucketExchange exchange(*channels.options(0).gradients, false, seconds(60));
    const at::Tensor arena = at::full({1000}, 1.0F);
    for (std::int64_t i = 0; i < 10; ++i) exchange.submit(arena, {100 * i, 100});
    exchange.wait();
  });
  EXPECT_THAT(errors[0], HasSubstr("ran out of patience"));
}

TEST(BucketExchange, GivesUpOnARankThatDoesNotCome) {
  Channels channels(2);
  const auto start = Clock::now();
  const auto errors = transport::run_ranks(2, [&](Rank rank) {
    if (rank == 1) return;
    BucketExchange exchange(*channels.options(0).gradients, false, std::chrono::milliseconds(300));
    exchange.submit(at::full({10}, 1.0F), {0, 10});
    exchange.wait();
  });
  EXPECT_NE(errors[0], "");
  EXPECT_LT(seconds_between(start, Clock::now()), patiently(20));
}

TEST(BucketExchange, EndsAtOnceWhileASumWaitsOnceItsRankHasLeft) {
  Channels channels(2);
  const at::Tensor arena = at::full({1000}, 1.0F);
  const auto start = Clock::now();
  {
    BucketExchange exchange(*channels.options(0).gradients, false, seconds(600));
    exchange.submit(arena, {0, 500});
    exchange.submit(arena, {500, 500});
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the first waits by now, mostly
    channels.leave(0, "rank 0 failed elsewhere");
  }
  EXPECT_LT(seconds_between(start, Clock::now()), patiently(20));
}

TEST(BroadcastFrom, GivesEveryoneTheRootsBytesWhateverTheLayout) {
  Channels channels(3);
  run_group(channels, [&](Rank rank) {
    at::Tensor values =
        at::full({2, 3, 4, 5}, static_cast<float>(rank)).contiguous(at::MemoryFormat::ChannelsLast);
    values[0][1][2][3] = static_cast<float>(10 * rank);
    broadcast_from(*channels.options(rank).control, 2, values, transport::far());
    EXPECT_EQ(values[0][1][2][3].item<float>(), 20);
    EXPECT_EQ(values[1][2][3][4].item<float>(), 2);
  });
}

}  // namespace
}  // namespace cohort::methods
