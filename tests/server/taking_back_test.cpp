// Workers whose user ends the wait for others: what they push counts once, or not at all.
#include <gtest/gtest.h>

#include "jobs.h"

namespace cohort::server {
namespace {

// Worker `rank` has pushed, and waits for another one.
struct Waiting {
  explicit Waiting(ServerMode mode) : cluster(spec(mode)) {
    count_pushes(cluster);
    cluster.begin();
    cluster.start_step(0);
    cluster.materialize();
  }
  static JobSpec spec(ServerMode mode) {
    JobSpec spec = counting(2, mode);
    spec.staleness = 0;
    return spec;
  }
  void take_back() {
    cluster.client(0).take_back(cluster.at(0).values);
    cluster.materialize();
  }

  Cluster cluster;
};

TEST(TakingBack, APushThatWaitsForItsRoundIsInNoModel) {
  Waiting waiting(ServerMode::kSync);
  Cluster& cluster = waiting.cluster;
  ASSERT_FALSE(cluster.client(0).pulled());
  waiting.take_back();
  ASSERT_TRUE(cluster.client(0).pulled());
  EXPECT_FALSE(cluster.client(0).push_made());
  EXPECT_EQ(cluster.client(0).version(), 0U);
  cluster.client(0).leave(membership::LeaveKind::kInterrupted);
  cluster.materialize();
  EXPECT_TRUE(cluster.client(0).membership().left());
  cluster.pass(std::chrono::seconds(5));
  EXPECT_EQ(cluster.server->version(), 0U) << "a round was made of what had been taken back";
  EXPECT_EQ(cluster.errors, std::vector<std::string>());
}

TEST(TakingBack, OneThatIsMadeMeanwhileIsAnswered) {
  Waiting waiting(ServerMode::kSync);
  Cluster& cluster = waiting.cluster;
  cluster.start_step(1);
  while (cluster.deliver_to_server(1)) {  // the round is made
  }
  waiting.take_back();
  ASSERT_TRUE(cluster.client(0).pulled());
  EXPECT_TRUE(cluster.client(0).push_made());
  EXPECT_EQ(cluster.client(0).version(), 1U);
  ASSERT_TRUE(cluster.client(0).push_outcome().has_value());
  EXPECT_EQ(cluster.at(0).values, values_of(cluster));
}

TEST(TakingBack, OneThatAnotherServerHasDealtWithIsPushedAgain) {
  for (const bool reconnects : {false, true}) {
    Waiting waiting(ServerMode::kSync);
    Cluster& cluster = waiting.cluster;
    waiting.take_back();
    if (reconnects) {
      cluster.disconnect(0);
      cluster.connect(0);
      cluster.materialize();
    }
    cluster.at(0).steps.pop_back();
    cluster.start_step(0);
    cluster.start_step(1);
    cluster.materialize();
    ASSERT_TRUE(cluster.end_step(0) && cluster.end_step(1));
    EXPECT_TRUE(cluster.client(0).push_made());
    EXPECT_EQ(cluster.server->version(), 1U);
    EXPECT_EQ(values_of(cluster), expected_of_rounds(cluster));
    EXPECT_EQ(cluster.errors, std::vector<std::string>());
  }
}

TEST(TakingBack, ValuesToSaveAreNotBoundToTheSlowestWorker) {
  Waiting waiting(ServerMode::kBounded);
  Cluster& cluster = waiting.cluster;
  ASSERT_FALSE(cluster.client(0).pulled()) << "it is a step ahead";
  waiting.take_back();
  ASSERT_TRUE(cluster.client(0).pulled());
  EXPECT_TRUE(cluster.client(0).push_made());
  EXPECT_EQ(cluster.at(0).values, values_of(cluster));
  EXPECT_EQ(cluster.client(0).progress().pushes, (std::vector<std::uint64_t>{1, 0}));
}

}  // namespace
}  // namespace cohort::server
