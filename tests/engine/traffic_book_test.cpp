#include "engine/traffic_book.h"

#include <gtest/gtest.h>

namespace cohort::engine {
namespace {

class TrafficBookTest : public testing::Test {
 protected:
  static std::uint64_t sent(const TrafficByPurpose& sums, TrafficPurpose purpose) {
    return sums[static_cast<std::size_t>(purpose)].sent;
  }

  Traffic others_;
  Traffic messages_;
  TrafficBook book_{[this] { return others_; }, [this] { return messages_; }};
};

TEST_F(TrafficBookTest, GivesBytesToWhatTheWorkerWasDoing) {
  others_.sent = 5;
  book_.turn_to(TrafficPurpose::kSteps);
  others_.sent += 100;
  {
    const TrafficBook::Scope scope(book_, TrafficPurpose::kEvaluation);
    others_.sent += 30;
  }
  others_.sent += 100;
  const TrafficByPurpose sums = book_.take();
  EXPECT_EQ(sent(sums, TrafficPurpose::kStart), 5U);
  EXPECT_EQ(sent(sums, TrafficPurpose::kSteps), 200U);
  EXPECT_EQ(sent(sums, TrafficPurpose::kEvaluation), 30U);
  EXPECT_EQ(book_.take(), TrafficByPurpose{});
}

TEST_F(TrafficBookTest, GivesMessagesThatComeEarlyToTheSteps) {
  book_.turn_to(TrafficPurpose::kSteps);
  {
    const TrafficBook::Scope scope(book_, TrafficPurpose::kCoordination);
    messages_.sent += 7;  // of the next step, from a rank that is ahead
    others_.sent += 1;
  }
  const TrafficByPurpose sums = book_.take();
  EXPECT_EQ(sent(sums, TrafficPurpose::kSteps), 7U);
  EXPECT_EQ(sent(sums, TrafficPurpose::kCoordination), 1U);
}

TEST_F(TrafficBookTest, GivesMessagesToWhoeverSaysTheyAreTheirs) {
  using Messages = TrafficBook::Messages;
  const TrafficBook::Scope saving(book_, TrafficPurpose::kCheckpoint);
  {
    const TrafficBook::Scope states(book_, TrafficPurpose::kCheckpoint, Messages::kForPurpose);
    messages_.sent += 11;
  }
  messages_.sent += 2;
  const TrafficByPurpose sums = book_.take();
  EXPECT_EQ(sent(sums, TrafficPurpose::kCheckpoint), 11U);
  EXPECT_EQ(sent(sums, TrafficPurpose::kSteps), 2U);
}

}  // namespace
}  // namespace cohort::engine
