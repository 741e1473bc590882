#include "transport/faulty.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/patience.h"
#include "transport/in_process.h"
#include "transport/rank_threads.h"

namespace cohort::transport {
namespace {

using namespace std::chrono_literals;

constexpr int kNumberedMessages = 400;

// Which of kNumberedMessages arrive.
std::vector<int> arrivals(const FaultPlan& plan) {
  auto group = make_in_process_group(2);
  FaultyTransport sender(std::move(group[0]), plan);
  for (int i = 0; i < kNumberedMessages; ++i) {
    const Bytes payload{static_cast<std::byte>(i & 255), static_cast<std::byte>(i >> 8)};
    sender.send(1, 1, payload, far());
  }
  std::vector<int> numbers;
  while (const auto message = group[1]->try_receive(1)) {
    numbers.push_back(static_cast<int>(message->payload[0]) +
                      256 * static_cast<int>(message->payload[1]));
  }
  return numbers;
}

TEST(FaultyTransport, DropsAboutTheShareAskedForAndKeepsTheOrder) {
  const std::vector<int> numbers = arrivals({.seed = 1, .drop_probability = 0.25});
  EXPECT_GT(numbers.size(), 240U);
  EXPECT_LT(numbers.size(), 360U);
  EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
  EXPECT_EQ(arrivals({}).size(), static_cast<std::size_t>(kNumberedMessages));
  EXPECT_TRUE(arrivals({.drop_probability = 1}).empty());
}

TEST(FaultyTransport, RepeatsItselfForTheSameSeed) {
  EXPECT_EQ(arrivals({.seed = 5, .drop_probability = 0.5}),
            arrivals({.seed = 5, .drop_probability = 0.5}));
  EXPECT_NE(arrivals({.seed = 5, .drop_probability = 0.5}),
            arrivals({.seed = 6, .drop_probability = 0.5}));
}

TEST(FaultyTransport, DelaysButNotPastTheDeadline) {
  auto group = make_in_process_group(2);
  FaultyTransport sender(std::move(group[0]), {.delay_probability = 1, .delay = 30ms});
  auto start = Clock::now();
  sender.send(1, 1, {}, far());
  EXPECT_GE(seconds_between(start, Clock::now()), 0.029);

  FaultyTransport slow(std::move(group[1]), {.delay_probability = 1, .delay = 1h});
  start = Clock::now();
  slow.send(0, 1, {}, deadline_in(20ms));
  EXPECT_LT(seconds_between(start, Clock::now()), patiently(5.0));
}

TEST(FaultyTransport, StopsDelayingWhenClosed) {
  auto group = make_in_process_group(2);
  FaultyTransport sender(std::move(group[0]), {.delay_probability = 1, .delay = 1h});
  const auto errors = run_ranks(2, [&](Rank thread) {
    if (thread == 0) sender.send(1, 1, {}, far());
    if (thread == 1) sender.close();
  });
  EXPECT_NE(errors[0], "");
}

TEST(FaultyTransport, ClosesAfterTheNumberOfMessagesAskedFor) {
  auto group = make_in_process_group(2);
  FaultyTransport sender(std::move(group[0]), {.close_after = 3});
  for (int i = 0; i < 3; ++i) sender.send(1, 1, {}, far());
  EXPECT_THROW(sender.send(1, 1, {}, far()), PeerError);
  for (int i = 0; i < 3; ++i) group[1]->receive(0, 1, far());
  EXPECT_THROW(group[1]->receive(0, 1, far()), PeerError);
}

TEST(FaultyTransport, RefusesImpossiblePlans) {
  for (const FaultPlan& plan :
       {FaultPlan{.drop_probability = 1.5}, FaultPlan{.delay_probability = -0.1},
        FaultPlan{.delay = -1ms}, FaultPlan{.close_after = -1}}) {
    auto group = make_in_process_group(1);
    EXPECT_THROW(FaultyTransport(std::move(group[0]), plan), ConfigError);
  }
}

}  // namespace
}  // namespace cohort::transport
