#include "collectives/presence.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace cohort::collectives {
namespace {

using namespace std::chrono_literals;

struct Place {
  Presence presence;
  Barrier group;
};

// Looked at so often that one of the rounds meets the moment between the two.
TEST(Presence, CountsThatOfAMemberThatLeavesAtOnce) {
  constexpr int kRounds = 30000;
  std::vector<Place> places(kRounds);
  std::atomic<int> begun = -1;
  std::thread leaving([&] {
    for (int round = 0; round < kRounds; ++round) {
      while (begun.load() < round) std::this_thread::yield();
      places[round].presence.announce(1, false);
      places[round].group.break_up(false);
    }
  });
  int broken = 0;
  const SpinPolicy patience{.looks = 1500, .yields = 20, .shared = false};
  for (int round = 0; round < kRounds; ++round) {
    begun.store(round);
    const auto [outcome, slept] =
        places[round].presence.await(1, places[round].group, patience, deadline_in(10s));
    broken += outcome == Barrier::Outcome::kMet ? 0 : 1;
  }
  leaving.join();
  EXPECT_EQ(broken, 0);
}

TEST(Presence, EndsWhenTheGroupBreaksBeforeTheMemberCame) {
  Place place;
  place.presence.announce(1, false);
  place.group.break_up(false);
  const auto await = [&](std::uint32_t number) {
    return place.presence.await(number, place.group, {}, deadline_in(10s)).outcome;
  };
  EXPECT_EQ(await(1), Barrier::Outcome::kMet);
  EXPECT_EQ(await(2), Barrier::Outcome::kBroken);
}

TEST(Presence, IsLateAtTheDeadline) {
  Place place;
  EXPECT_EQ(place.presence.await(1, place.group, {}, deadline_in(20ms)).outcome,
            Barrier::Outcome::kLate);
}

}  // namespace
}  // namespace cohort::collectives
