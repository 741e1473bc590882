#include "server/parameter_server.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/random.h"
#include "jobs.h"

namespace cohort::server {
namespace {

using Kind = PushOutcome::Kind;

TEST(ParameterServer, SynchronousRoundsAreTheReferenceOptimizerFedTheMean) {
  for (const std::string optimizer : {"sgd", "adam"}) {
    for (const int workers : {1, 2, 4}) {
      JobSpec spec = job(workers, ServerMode::kSync);
      spec.optimizer = optimizer;
      spec.schedule = "cosine";
      spec.schedule_options.total_epochs = 3;
      spec.updates_per_epoch = 4;
      Cluster cluster(spec);
      for (std::size_t i = 0; i < cluster.initial.size(); ++i) {
        cluster.initial[i] = 0.1F * static_cast<float>(i);
      }
      cluster.begin();
      cluster.train(12);
      EXPECT_EQ(cluster.server->version(), 12U);
      EXPECT_EQ(values_of(cluster), expected_of_rounds(cluster)) << optimizer << " " << workers;
      EXPECT_EQ(cluster.server->counters().pushes, static_cast<std::uint64_t>(12 * workers));
      EXPECT_TRUE(cluster.errors.empty());
      EXPECT_EQ(cluster.version_changes_seen, 12);
    }
  }
}

TEST(ParameterServer, AsynchronousUpdatesAreThePushesInTheOrderOfTheirAnswers) {
  Cluster cluster(job(3, ServerMode::kAsync));
  cluster.begin();
  Reference reference(cluster.spec);
  RandomStream random(5, "order");
  for (int step = 0; step < 60; ++step) {
    const Rank rank = static_cast<Rank>(random.below(3));
    cluster.start_step(rank);
    cluster.materialize();
    ASSERT_TRUE(cluster.end_step(rank));
    ASSERT_EQ(cluster.at(rank).steps.back().outcome.kind, Kind::kApplied);
    reference.update({cluster.at(rank).steps.back().gradients});
  }
  EXPECT_EQ(values_of(cluster), reference.parameters);
  EXPECT_EQ(cluster.server->version(), 60U);
  std::uint64_t pushes = 0;
  for (const auto& [age, count] : cluster.server->counters().staleness) pushes += count;
  EXPECT_EQ(pushes, 60U);
}

TEST(ParameterServer, TheFirstRoundWaitsForEveryWorker) {
  Cluster cluster(counting(2, ServerMode::kSync));
  cluster.connect(0);
  cluster.materialize();
  cluster.advance(0);
  cluster.materialize();
  cluster.advance(0);
  cluster.start_step(0);
  cluster.materialize();
  cluster.pass(std::chrono::seconds(20));
  EXPECT_EQ(cluster.server->version(), 0U);
  EXPECT_EQ(cluster.server->text(), "1 of 2 workers; waiting for 1");
}

TEST(ParameterServer, BackupWorkersMayBeLateAndAreToldSo) {
  JobSpec spec = counting(3, ServerMode::kSync);
  spec.backup_workers = 1;
  Cluster cluster(spec);
  count_pushes(cluster);
  cluster.begin();
  for (const Rank rank : {0, 2}) cluster.start_step(rank);
  cluster.materialize();
  EXPECT_EQ(cluster.server->version(), 1U);
  cluster.start_step(1);  // computed at version 0
  cluster.materialize();
  ASSERT_TRUE(cluster.end_step(1));
  EXPECT_EQ(cluster.at(1).steps.back().outcome.kind, Kind::kDropped);
  EXPECT_EQ(cluster.client(1).version(), 1U);
  EXPECT_EQ(cluster.server->counters().dropped, 1U);
  EXPECT_EQ(cluster.server->parameters()[8], 0.0F);
  EXPECT_EQ(cluster.server->parameters()[16], 0.5F);
}

TEST(ParameterServer, NumbersThatAreNotFiniteNeverReachTheModel) {
  for (const ServerMode mode : {ServerMode::kSync, ServerMode::kAsync, ServerMode::kBounded}) {
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      Cluster cluster(counting(1, mode));
      cluster.gradient = [&](Rank, int step, std::span<const float>, std::span<float> out) {
        std::fill(out.begin(), out.end(), -1.0F);
        if (step == 1) out[5] = bad;
      };
      cluster.begin();
      cluster.train(3);
      EXPECT_EQ(cluster.at(0).steps[1].outcome.kind, Kind::kRejected);
      EXPECT_NE(cluster.at(0).steps[1].outcome.reason.find("not finite"), std::string::npos);
      EXPECT_EQ(cluster.server->counters().rejected, 1U);
      EXPECT_EQ(values_of(cluster), std::vector<float>(8, 2.0F));
    }
  }
}

TEST(ParameterServer, ASumThatOverflowsIsRejectedForAll) {
  Cluster cluster(counting(2, ServerMode::kSync));
  cluster.gradient = [](Rank, int, std::span<const float>, std::span<float> out) {
    std::fill(out.begin(), out.end(), std::numeric_limits<float>::max());
  };
  cluster.begin();
  cluster.train(1);
  EXPECT_EQ(cluster.server->counters().rejected, 2U);
  EXPECT_EQ(values_of(cluster), std::vector<float>(16, 0.0F));
}

TEST(ParameterServer, NoReadIsFurtherAheadThanTheStaleness) {
  JobSpec spec = counting(3, ServerMode::kBounded);
  spec.staleness = 2;
  Cluster cluster(spec);
  count_pushes(cluster);
  cluster.begin();
  std::vector<int> clocks(3);
  RandomStream random(3, "ssp");
  for (int event = 0; event < 300; ++event) {
    const Rank rank = static_cast<Rank>(random.below(3));
    if (cluster.at(rank).phase == Cluster::Worker::Phase::kReady &&
        clocks[static_cast<std::size_t>(rank)] < 8) {
      cluster.start_step(rank);
      ++clocks[static_cast<std::size_t>(rank)];
      cluster.materialize();
    }
    for (Rank each = 0; each < 3; ++each) {
      if (cluster.at(each).phase != Cluster::Worker::Phase::kPushing || !cluster.end_step(each)) {
        continue;
      }
      const int slowest = *std::min_element(clocks.begin(), clocks.end());
      EXPECT_LE(clocks[static_cast<std::size_t>(each)] - slowest, 2);
    }
  }
  EXPECT_EQ(values_of(cluster), std::vector<float>(24, 1.0F));
}

TEST(ParameterServer, DelayCompensationIsItsFormula) {
  JobSpec spec = counting(2, ServerMode::kAsync);
  spec.delay_compensation = 0.5;
  Cluster cluster(spec);
  cluster.gradient = [](Rank rank, int, std::span<const float>, std::span<float> out) {
    std::fill(out.begin(), out.end(), rank == 0 ? -3.0F : 2.0F);
  };
  cluster.begin();
  cluster.start_step(0);
  cluster.materialize();  // w = 3, at which worker 1 has pulled 0
  cluster.start_step(1);
  cluster.materialize();
  ASSERT_TRUE(cluster.end_step(1));
  EXPECT_EQ(cluster.at(1).steps.back().outcome.staleness, 1U);
  // g + lambda g^2 (w - w_then) = 2 + 0.5 * 4 * 3 = 8
  EXPECT_EQ(values_of(cluster), std::vector<float>(16, 3.0F - 8.0F));
}

TEST(ParameterServer, TheRateFollowsTheScheduleOverUpdates) {
  JobSpec spec = counting(1, ServerMode::kAsync);
  spec.schedule = "multi-step";
  spec.schedule_options.milestones = {1, 2};
  spec.schedule_options.gamma = 0.5;
  spec.updates_per_epoch = 2;
  spec.warmup_epochs = 0.5;
  spec.warmup_from = 0.25;
  Cluster cluster(spec);
  cluster.gradient = [](Rank, int, std::span<const float>, std::span<float> out) {
    std::fill(out.begin(), out.end(), -1.0F);
  };
  cluster.begin();
  cluster.train(6);  // 0.25, then 1, then 0.5 twice, then 0.25 twice
  EXPECT_FLOAT_EQ(cluster.server->parameters()[0], 0.25F + 1.0F + 2 * 0.5F + 2 * 0.25F);
}

TEST(ParameterServer, InitialValuesMayComeWithTheOptimizersStateAndACount) {
  JobSpec spec = job(1, ServerMode::kAsync);
  Cluster cluster(spec);
  cluster.connect(0);
  cluster.materialize();
  const std::vector<float> parameters(37, 2.0F), momentum(37, 4.0F);
  const std::vector<ArenaView<const float>> slots = {momentum};
  cluster.client(0).initialize(parameters, slots, {.version = 100});
  std::vector<float> got(37);
  cluster.client(0).pull(got, 1);
  cluster.materialize();
  EXPECT_TRUE(cluster.client(0).pulled());
  EXPECT_EQ(got, momentum);
  cluster.client(0).pull(got);
  cluster.materialize();
  EXPECT_EQ(got, parameters);
  EXPECT_EQ(cluster.client(0).version(), 100U);
}

TEST(ParameterServer, AShareWithoutElementsCountsUpdatesAllTheSame) {
  for (const ServerMode mode : {ServerMode::kSync, ServerMode::kAsync}) {
    Cluster cluster(job(2, mode, 0));
    cluster.begin();
    cluster.train(3);
    EXPECT_TRUE(cluster.all_left());
    EXPECT_EQ(cluster.server->version(), mode == ServerMode::kSync ? 3U : 6U);
  }
}

TEST(ParameterServer, TravelsInHalfPrecisionWhenAsked) {
  for (const WireFormat format : {WireFormat::kFloat16, WireFormat::kBfloat16}) {
    JobSpec spec = counting(2, ServerMode::kSync);
    spec.wire = format;
    spec.size = 700000;  // several frames
    Cluster cluster(spec);
    cluster.gradient = [](Rank rank, int, std::span<const float>, std::span<float> out) {
      std::fill(out.begin(), out.end(), rank == 0 ? -1.00001F : -0.5F);
    };
    cluster.begin();
    cluster.train(1);
    EXPECT_EQ(cluster.server->parameters()[699999], 0.75F);
    EXPECT_EQ(cluster.at(1).values.back(), 0.75F);
    EXPECT_TRUE(cluster.errors.empty());
  }
}

}  // namespace
}  // namespace cohort::server
