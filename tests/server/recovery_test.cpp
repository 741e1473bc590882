#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/random.h"
#include "jobs.h"
#include "server/parameter_server.h"

namespace cohort::server {
namespace {

using std::chrono::milliseconds;
using Kind = PushOutcome::Kind;

TEST(Recovery, AConnectionLostAtAnyFrameChangesNothing) {
  Cluster undisturbed(in_parts(ServerMode::kSync));
  undisturbed.parts = 2;
  run_with_fault(undisturbed, 3, -1, [] {});
  const std::vector<float> expected = values_of(undisturbed);
  ASSERT_EQ(expected, expected_of_rounds(undisturbed));
  ASSERT_GT(undisturbed.events, 60);
  std::uint64_t duplicates = 0;
  for (int at = 0; at < undisturbed.events; ++at) {
    for (const Rank rank : {0, 1}) {
      Cluster cluster(in_parts(ServerMode::kSync));
      cluster.parts = 2;
      run_with_fault(cluster, 3, at, [&] { cluster.disconnect(rank), cluster.connect(rank); });
      ASSERT_EQ(values_of(cluster), expected) << "worker " << rank << " at event " << at;
      ASSERT_EQ(cluster.server->counters().pushes, 6U);
      ASSERT_TRUE(cluster.errors.empty()) << cluster.errors.front();
      duplicates += cluster.server->counters().duplicates;
    }
  }
  EXPECT_GT(duplicates, 0U);
}

TEST(Recovery, ACrashOfTheServerAtAnyMomentChangesNothing) {
  for (const int persist_every : {0, 1, 3, 7, 50}) {
    const JobSpec spec = [] {
      JobSpec small = job(3, ServerMode::kSync);
      small.total_updates = 4;
      return small;
    }();
    Cluster undisturbed(spec, keeping());
    run_with_fault(
        undisturbed, 4, -1, [] {}, persist_every);
    const std::vector<float> expected = values_of(undisturbed);
    ASSERT_EQ(expected, expected_of_rounds(undisturbed));
    for (int at = 0; at < undisturbed.events; ++at) {
      Cluster cluster(spec, keeping());
      run_with_fault(
          cluster, 4, at, [&] { cluster.crash_server(), cluster.restart_server(); }, persist_every);
      ASSERT_EQ(cluster.server->version(), 4U) << at;
      ASSERT_EQ(values_of(cluster), expected) << "crash at event " << at;
      ASSERT_EQ(cluster.server->counters().pushes, 12U) << at;
      ASSERT_EQ(cluster.server->counters().lost, 0U) << at;
      ASSERT_TRUE(cluster.errors.empty()) << cluster.errors.front();
    }
  }
}

TEST(Recovery, AsynchronousPushesAreInTheModelExactlyOnceOverCrashes) {
  for (const ServerMode mode : {ServerMode::kAsync, ServerMode::kBounded}) {
    Cluster undisturbed(counting(3, mode), keeping());
    count_pushes(undisturbed);
    run_with_fault(undisturbed, 8, -1, [] {});
    for (int at = 0; at < undisturbed.events; ++at) {
      for (int kind = 0; kind < 3; ++kind) {
        Cluster cluster(counting(3, mode), keeping());
        count_pushes(cluster);
        run_with_fault(cluster, 8, at, [&] {
          const Rank rank = static_cast<Rank>(at % 3);
          if (kind != 1) cluster.crash_server();
          if (kind != 1) cluster.restart_server();
          if (kind != 0) cluster.disconnect(rank);
        });
        ASSERT_EQ(values_of(cluster), std::vector<float>(24, 1.0F)) << at << " " << kind;
        ASSERT_EQ(cluster.server->counters().pushes, 24U);
        ASSERT_TRUE(cluster.errors.empty()) << cluster.errors.front();
      }
    }
  }
}

TEST(Recovery, ARestartedWorkerGetsANewIncarnationAndItsProgress) {
  Cluster cluster(counting(2, ServerMode::kAsync), keeping());
  count_pushes(cluster);
  cluster.begin();
  cluster.start_step(1);
  cluster.materialize();
  ASSERT_TRUE(cluster.end_step(1));
  cluster.disconnect(1);
  cluster.start_worker(1);
  cluster.connect(1);
  cluster.materialize();
  EXPECT_EQ(cluster.client(1).membership().incarnation(), 2U);
  EXPECT_EQ(cluster.client(1).joined_body().progress, 1U);
  EXPECT_EQ(cluster.client(1).joined_body().applied, 0U);
  EXPECT_TRUE(cluster.client(1).joined_body().initialized);
}

TEST(Recovery, TellsANewIncarnationOnlyWhenItIsOnDisk) {
  Cluster cluster(counting(1, ServerMode::kAsync), keeping());
  cluster.auto_persist = false;
  cluster.connect(0);
  cluster.materialize();
  EXPECT_FALSE(cluster.client(0).membership().joined());
  cluster.server->on_persist_failed(cluster.persisting.front().id, "disk full", cluster.now);
  cluster.persisting.clear();
  cluster.materialize();
  EXPECT_FALSE(cluster.client(0).membership().joined());
  EXPECT_EQ(cluster.server->counters().persist_failures, 1U);
  cluster.pass(std::chrono::seconds(2));  // it is tried again
  ASSERT_EQ(cluster.persisting.size(), 1U);
  cluster.finish_persist();
  cluster.materialize();
  EXPECT_TRUE(cluster.client(0).membership().joined());
}

TEST(Recovery, AnEvictedIncarnationIsFencedAndComesBackAsANewOne) {
  for (const bool applied : {false, true}) {
    Cluster cluster(counting(2, ServerMode::kAsync));
    count_pushes(cluster);
    cluster.begin();
    cluster.start_step(1);
    if (applied) cluster.deliver_to_server(1);  // the push arrives, its answer does not
    cluster.at(1).silent = true;
    cluster.pass(std::chrono::milliseconds(3000));
    EXPECT_EQ(cluster.server->counters().evictions, 1U);
    cluster.notice_closed();
    cluster.at(1).silent = false;
    cluster.connect(1);
    cluster.materialize();
    ASSERT_TRUE(cluster.end_step(1));
    EXPECT_EQ(cluster.client(1).membership().rejoined(), 1U);
    EXPECT_EQ(cluster.client(1).membership().incarnation(), 2U);
    EXPECT_EQ(cluster.server->counters().fenced, 1U);
    const Kind outcome = cluster.at(1).steps.back().outcome.kind;
    EXPECT_EQ(outcome, applied ? Kind::kApplied : Kind::kFenced);
    EXPECT_EQ(cluster.server->parameters()[8], applied ? 1.0F : 0.0F);
    cluster.start_step(1);
    cluster.materialize();
    ASSERT_TRUE(cluster.end_step(1));
    EXPECT_EQ(cluster.server->parameters()[9], 1.0F);
  }
}

TEST(Recovery, ASilentWorkerHoldsUpNoRound) {
  Cluster cluster(counting(3, ServerMode::kSync));
  count_pushes(cluster);
  cluster.begin();
  for (const Rank rank : {0, 1}) cluster.start_step(rank);
  cluster.materialize();
  EXPECT_EQ(cluster.server->version(), 0U);
  EXPECT_EQ(cluster.server->text(), "3 of 3 workers; waiting for 2");
  cluster.at(2).silent = true;
  cluster.pass(std::chrono::milliseconds(2400));
  EXPECT_EQ(cluster.server->version(), 0U);
  cluster.pass(std::chrono::milliseconds(300));
  EXPECT_EQ(cluster.server->version(), 1U);
  EXPECT_EQ(cluster.server->parameters()[0], 0.5F);  // the mean of the two that are there
}

TEST(Recovery, ADeadWorkerDoesNotPinTheClock) {
  JobSpec spec = counting(2, ServerMode::kBounded);
  Cluster cluster(spec);
  count_pushes(cluster);
  cluster.begin();
  cluster.start_step(0);
  cluster.materialize();
  EXPECT_FALSE(cluster.end_step(0));  // a step ahead of worker 1, and none is allowed
  cluster.disconnect(1);
  cluster.pass(std::chrono::milliseconds(400));
  cluster.materialize();
  EXPECT_FALSE(cluster.end_step(0));  // it may be back at once
  cluster.pass(std::chrono::milliseconds(300));
  cluster.materialize();
  EXPECT_TRUE(cluster.end_step(0));
  cluster.start_worker(1);  // begins at the clock of the other
  cluster.connect(1);
  cluster.materialize();
  cluster.advance(1);
  cluster.materialize();
  EXPECT_TRUE(cluster.client(1).pulled());
}

TEST(Recovery, EndsWhenTheLastUpdateIsMadeAndAllHaveLeft) {
  JobSpec spec = counting(2, ServerMode::kSync);
  spec.total_updates = 3;
  Cluster cluster(spec, keeping());
  count_pushes(cluster);
  cluster.begin();
  cluster.train(8);
  EXPECT_EQ(cluster.server->version(), 3U);
  EXPECT_TRUE(cluster.client(0).finished());
  EXPECT_TRUE(cluster.all_left());
  cluster.pass(std::chrono::milliseconds(100));
  cluster.materialize();  // the last snapshot
  ASSERT_TRUE(cluster.server->finished().has_value());
  ASSERT_TRUE(cluster.durable.has_value());
  EXPECT_EQ(cluster.durable->parameters, values_of(cluster));
}

TEST(Recovery, WaitsAWhileForAnEvictedWorkerAndForOneThatNeverCame) {
  ServerOptions options;
  options.idle_exit = std::chrono::seconds(10);
  Cluster cluster(counting(3, ServerMode::kAsync), options);
  for (const Rank rank : {0, 1}) cluster.connect(rank);
  cluster.materialize();
  cluster.disconnect(1);
  cluster.pass(std::chrono::milliseconds(3000));
  cluster.client(0).leave();
  cluster.materialize();
  EXPECT_TRUE(cluster.client(0).membership().left());
  cluster.disconnect(0);
  cluster.pass(std::chrono::milliseconds(9000));
  EXPECT_FALSE(cluster.server->finished());
  cluster.pass(std::chrono::milliseconds(1200));
  EXPECT_TRUE(cluster.server->finished());
  cluster.connect(1);  // the last moment
  cluster.materialize();
  EXPECT_FALSE(cluster.server->finished());
}

TEST(Recovery, EndsWhenNobodyHasBeenThereForLong) {
  ServerOptions options;
  options.idle_exit = std::chrono::seconds(5);
  Cluster cluster(counting(1, ServerMode::kAsync), options);
  cluster.pass(std::chrono::milliseconds(4900));
  EXPECT_FALSE(cluster.server->finished());
  cluster.pass(std::chrono::milliseconds(300));
  EXPECT_TRUE(cluster.server->finished());
}

TEST(Recovery, ADamagedSnapshotIsAFileError) {
  Cluster cluster(counting(2, ServerMode::kSync), keeping());
  count_pushes(cluster);
  cluster.begin();
  cluster.train(2);
  ASSERT_TRUE(cluster.durable.has_value());
  EXPECT_NO_THROW(cluster.start_server(&*cluster.durable));
  RandomStream random(2, "damage");
  for (int i = 0; i < 2000; ++i) {
    ServerSnapshot damaged = *cluster.durable;
    const std::size_t at = random.below(damaged.state.size());
    damaged.state[at] = static_cast<char>(random.below(256));
    try {
      cluster.start_server(&damaged);
    } catch (const FileError&) {
    }
  }
  ServerSnapshot short_one = *cluster.durable;
  short_one.parameters.pop_back();
  EXPECT_THROW(cluster.start_server(&short_one), FileError);
  ServerSnapshot poisoned = *cluster.durable;
  poisoned.parameters[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(cluster.start_server(&poisoned), FileError);
}

}  // namespace
}  // namespace cohort::server
