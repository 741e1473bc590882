// Values are sent as fast as each worker takes them, while updates go on: everybody gets one
// version, and nobody waits for anybody.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/random.h"
#include "jobs.h"

namespace cohort::server {
namespace {

using ::testing::IsEmpty;

// In frames of two values, one at a time to each worker.
void narrow(Cluster& cluster) {
  cluster.piece = 2;
  cluster.most_queued = 1;
}

// The versions of which values are on their way.
std::size_t versions_under_way(const Cluster& cluster) {
  std::set<std::uint32_t> versions;
  for (const auto& worker : cluster.workers) {
    for (const Parcel& frame : worker->to_worker) {
      const bool values =
          frame.header.type == static_cast<network::FrameType>(ServerFrame::kValues);
      if (values) versions.insert(frame.header.detail);
    }
  }
  return versions.size();
}

void expect_one_version(Cluster& cluster, Rank rank) {
  const std::uint64_t version = cluster.client(rank).version();
  const bool newest = version == cluster.server->version();
  EXPECT_EQ(cluster.at(rank).values, newest ? values_of(cluster) : cluster.history.at(version))
      << "worker " << rank;
}

// Everything that may happen next, in an order drawn by `seed`; returns the most versions that were
// under way at once.
std::size_t shuffle(Cluster& cluster, Seed seed, int steps) {
  RandomStream random(seed, "order");
  std::size_t most = 0;
  int idle = 0;
  while (idle < 200) {
    const Rank rank =
        static_cast<Rank>(random.below(static_cast<std::uint64_t>(cluster.spec.workers)));
    bool any = false;
    switch (random.below(4)) {
      case 0:
        any = cluster.deliver_to_server(rank);
        break;
      case 1:
        any = cluster.deliver_to_worker(rank);
        break;
      default:
        if (cluster.at(rank).phase == Cluster::Worker::Phase::kPushing) {
          any = cluster.end_step(rank);
          if (any) expect_one_version(cluster, rank);
        } else if (static_cast<int>(cluster.at(rank).steps.size()) < steps) {
          cluster.start_step(rank);
          any = true;
        }
    }
    most = std::max(most, versions_under_way(cluster));
    idle = any ? 0 : idle + 1;
  }
  return most;
}

// The pushes one after the other, in the order in which they became versions.
std::vector<float> expected_of_pushes(const Cluster& cluster) {
  std::map<std::uint64_t, const std::vector<float>*> pushes;
  for (const auto& worker : cluster.workers) {
    for (const Cluster::Step& step : worker->steps) {
      pushes[step.base + step.outcome.staleness] = &step.gradients;
    }
  }
  Reference reference(cluster.spec);
  for (const auto& [base, gradients] : pushes) reference.update({*gradients});
  return reference.parameters;
}

TEST(Reading, GivesEveryWorkerOneVersionWhileUpdatesGoOn) {
  for (const std::string optimizer : {"sgd", "adam"}) {
    std::size_t most = 0;
    for (Seed seed = 1; seed <= 20; ++seed) {
      JobSpec spec = job(4, ServerMode::kAsync);
      spec.optimizer = optimizer;
      Cluster cluster(spec);
      cluster.begin();
      narrow(cluster);
      cluster.parts = 3;
      most = std::max(most, shuffle(cluster, seed, 6));
      ASSERT_THAT(cluster.errors, IsEmpty());
      ASSERT_EQ(cluster.server->version(), 24U);
      ASSERT_EQ(values_of(cluster), expected_of_pushes(cluster));
    }
    EXPECT_GE(most, 3U);  // at once: else this has tested nothing
  }
}

TEST(Reading, ChangesNothingOfWhatUpdatesComeTo) {
  std::vector<std::vector<float>> results;
  for (const bool paced : {false, true}) {
    JobSpec spec = job(3, ServerMode::kSync);
    spec.optimizer = "adam";
    Cluster cluster(spec);
    cluster.begin();
    if (paced) narrow(cluster);
    cluster.train(8);
    EXPECT_EQ(cluster.server->version(), 8U);
    EXPECT_EQ(values_of(cluster), expected_of_rounds(cluster));
    results.push_back(values_of(cluster));
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(Reading, HoldsUpNobody) {
  Cluster cluster(job(2, ServerMode::kAsync));
  cluster.begin();
  narrow(cluster);
  cluster.start_step(0);
  while (cluster.deliver_to_server(0)) continue;
  ASSERT_EQ(cluster.server->version(), 1U);  // and its values wait: it takes nothing
  for (int step = 0; step < 5; ++step) {
    cluster.start_step(1);
    while (cluster.deliver_to_server(1) || cluster.deliver_to_worker(1)) continue;
    ASSERT_TRUE(cluster.end_step(1));
    expect_one_version(cluster, 1);
  }
  EXPECT_EQ(cluster.server->version(), 6U);
  while (cluster.deliver_to_worker(0)) continue;
  ASSERT_TRUE(cluster.end_step(0));
  EXPECT_EQ(cluster.client(0).version(), 1U);
  expect_one_version(cluster, 0);
}

// The one ahead is sent its version, the one behind it the next, and no value is copied.
TEST(Reading, CopiesNothingForThoseWhoKeepAhead) {
  Cluster cluster(job(2, ServerMode::kAsync));
  cluster.begin();
  narrow(cluster);
  cluster.start_step(0);
  while (cluster.deliver_to_server(0)) continue;
  for (int frame = 0; frame < 3; ++frame) ASSERT_TRUE(cluster.deliver_to_worker(0));
  cluster.start_step(1);
  while (cluster.deliver_to_server(1)) continue;
  EXPECT_EQ(cluster.server->version(), 2U);
  for (bool any = true; any;) {
    any = cluster.deliver_to_worker(0);
    any = cluster.deliver_to_worker(1) || any;
  }
  ASSERT_TRUE(cluster.end_step(0) && cluster.end_step(1));
  EXPECT_EQ(cluster.client(0).version(), 1U);
  EXPECT_EQ(cluster.client(1).version(), 2U);
  expect_one_version(cluster, 0);
  expect_one_version(cluster, 1);
  EXPECT_EQ(cluster.copies, 0);
}

TEST(Reading, OfTheOptimizersVectorsIsOfOneVersionToo) {
  JobSpec spec = job(2, ServerMode::kAsync);
  spec.optimizer = "adam";
  std::vector<std::vector<float>> taken;
  for (const bool disturbed : {false, true}) {
    Cluster cluster(spec);
    cluster.begin();
    cluster.train(2);
    narrow(cluster);
    cluster.at(0).phase = Cluster::Worker::Phase::kLeaving;  // it only looks
    taken.emplace_back(static_cast<std::size_t>(spec.size));
    cluster.client(0).pull(taken.back(), 1);
    while (cluster.deliver_to_server(0)) continue;
    if (disturbed) {
      cluster.start_step(1);
      while (cluster.deliver_to_server(1) || cluster.deliver_to_worker(1)) continue;
    }
    while (cluster.deliver_to_worker(0)) continue;
    EXPECT_TRUE(cluster.client(0).pulled());
  }
  EXPECT_EQ(taken[0], taken[1]);
}

TEST(Reading, EndsWithItsConnection) {
  ServerOptions options;
  options.keeps_state = true;
  Cluster cluster(job(2, ServerMode::kAsync), options);
  cluster.auto_persist = true;
  cluster.begin();
  narrow(cluster);
  cluster.start_step(0);
  while (cluster.deliver_to_server(0)) continue;
  cluster.disconnect(0);
  cluster.start_step(1);
  cluster.materialize();
  cluster.connect(0);
  cluster.materialize();
  ASSERT_TRUE(cluster.end_step(0) && cluster.end_step(1));
  EXPECT_EQ(cluster.client(0).version(), 2U);
  expect_one_version(cluster, 0);
  EXPECT_THAT(cluster.errors, IsEmpty());
}

}  // namespace
}  // namespace cohort::server
