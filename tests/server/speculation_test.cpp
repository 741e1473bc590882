// Values that are sent while the gradients still come in: the same as others, or none at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "jobs.h"

namespace cohort::server {
namespace {

using ::testing::IsEmpty;

ServerOptions in_small_stretches() {
  ServerOptions options;
  options.speculation_stretch = 3;
  return options;
}

void prepare(Cluster& cluster, bool ahead) {
  cluster.parts = 6;
  cluster.ahead = ahead;
  cluster.begin();
}

// The parameters and the optimizer's vectors, as worker 0 can take them.
std::vector<std::vector<float>> state_of(Cluster& cluster, std::size_t slots) {
  std::vector<std::vector<float>> state = {values_of(cluster)};
  for (std::uint32_t slot = 1; slot <= slots; ++slot) {
    state.emplace_back(static_cast<std::size_t>(cluster.spec.size));
    cluster.client(0).pull(state.back(), slot);
    cluster.materialize();
    EXPECT_TRUE(cluster.client(0).pulled());
  }
  return state;
}

// Steps of all workers, one frame of each at a time.
void step_together(Cluster& cluster, int steps) {
  for (int step = 0; step < steps; ++step) {
    for (Rank rank = 0; rank < cluster.spec.workers; ++rank) cluster.start_step(rank);
    for (bool any = true; any;) {
      any = false;
      for (Rank rank = 0; rank < cluster.spec.workers; ++rank) {
        any = cluster.deliver_to_server(rank) || any;
        any = cluster.deliver_to_worker(rank) || any;
      }
    }
    for (Rank rank = 0; rank < cluster.spec.workers; ++rank) {
      EXPECT_TRUE(cluster.end_step(rank)) << rank;
      EXPECT_EQ(cluster.at(rank).values, cluster.at(0).values);
    }
  }
}

TEST(SpeculativeUpdates, ComeToTheSameBitsAsOrdinaryUpdates) {
  for (const std::string optimizer : {"sgd", "adam"}) {
    for (const int workers : {1, 3}) {
      const ServerMode mode = workers == 1 ? ServerMode::kAsync : ServerMode::kSync;
      JobSpec spec = job(workers, mode);
      spec.optimizer = optimizer;
      const std::size_t slots = optimizer == "adam" ? 2 : 1;
      Cluster ordinary(spec, in_small_stretches(), 1), ahead(spec, in_small_stretches(), 1);
      prepare(ordinary, false);
      prepare(ahead, true);
      step_together(ordinary, 5);
      step_together(ahead, 5);
      EXPECT_EQ(ordinary.sent[ServerFrame::kEarlyValues], 0);
      EXPECT_GE(ahead.sent[ServerFrame::kEarlyValues], 5 * 8 * workers);
      EXPECT_EQ(ahead.server->version(), 5U);
      EXPECT_EQ(ahead.server->counters().speculative, 5U);
      EXPECT_EQ(state_of(ahead, slots), state_of(ordinary, slots)) << optimizer << workers;
      EXPECT_EQ(ahead.at(0).values, values_of(ahead));
      EXPECT_THAT(ahead.errors, IsEmpty());
    }
  }
}

TEST(SpeculativeUpdates, GoOnForAWorkerThatHasPushedAllAndWaits) {
  Cluster cluster(counting(2, ServerMode::kSync), in_small_stretches(), 1);
  count_pushes(cluster);
  prepare(cluster, true);
  for (const Rank rank : {0, 1}) cluster.start_step(rank);
  while (cluster.deliver_to_server(0)) continue;
  EXPECT_EQ(cluster.sent[ServerFrame::kEarlyValues], 0);
  const auto on_the_way = [&] { return cluster.at(0).to_worker.size(); };
  const std::size_t before = on_the_way();
  for (int frame = 0; frame < 5; ++frame) cluster.deliver_to_server(1);
  EXPECT_GT(on_the_way(), before);
  cluster.materialize();
  for (const Rank rank : {0, 1}) {
    EXPECT_TRUE(cluster.end_step(rank));
    EXPECT_EQ(cluster.at(rank).values, values_of(cluster));
  }
  EXPECT_EQ(cluster.server->counters().speculative, 1U);
  EXPECT_THAT(cluster.errors, IsEmpty());
}

TEST(SpeculativeUpdates, CostNoFurtherFrameWhereAPushIsOne) {
  Cluster cluster(job(1, ServerMode::kAsync));
  cluster.ahead = true;
  cluster.begin();
  const int before = cluster.sent[ServerFrame::kValues];
  step_together(cluster, 4);
  EXPECT_EQ(cluster.sent[ServerFrame::kEarlyValues], 0);
  EXPECT_EQ(cluster.sent[ServerFrame::kValues], before + 4);
}

TEST(SpeculativeUpdates, AreNotTheModelBeforeThePushIsWhole) {
  Cluster cluster(counting(2, ServerMode::kAsync), in_small_stretches(), 1);
  count_pushes(cluster);
  prepare(cluster, true);
  const std::vector<float> before = values_of(cluster);
  cluster.start_step(0);
  for (int frame = 0; frame < 6; ++frame) cluster.deliver_to_server(0);  // the pull, five of six
  EXPECT_GT(cluster.sent[ServerFrame::kEarlyValues], 0);
  EXPECT_EQ(values_of(cluster), before);
  EXPECT_EQ(cluster.server->version(), 0U);
  std::vector<float> seen(before.size(), -1);
  cluster.client(1).pull(seen);
  while (cluster.deliver_to_server(1) || cluster.deliver_to_worker(1)) continue;
  EXPECT_EQ(seen, before);
  cluster.materialize();
  EXPECT_TRUE(cluster.end_step(0));
  EXPECT_EQ(cluster.at(0).values, values_of(cluster));
  EXPECT_EQ(cluster.at(0).values[0], 1.0F);
}

TEST(SpeculativeUpdates, AreForgottenWhenAnotherPushIsFirst) {
  Cluster cluster(counting(2, ServerMode::kAsync), in_small_stretches(), 1);
  count_pushes(cluster);
  prepare(cluster, true);
  cluster.start_step(0);
  for (int frame = 0; frame < 5; ++frame) cluster.deliver_to_server(0);
  EXPECT_GT(cluster.sent[ServerFrame::kEarlyValues], 0);
  cluster.start_step(1);
  while (cluster.deliver_to_server(1) || cluster.deliver_to_worker(1)) continue;
  EXPECT_TRUE(cluster.end_step(1));
  cluster.materialize();
  EXPECT_TRUE(cluster.end_step(0));
  EXPECT_EQ(cluster.at(0).values, values_of(cluster));
  EXPECT_EQ(cluster.at(0).values[0], 1.0F);
  EXPECT_EQ(cluster.at(0).values[8], 1.0F);
  EXPECT_EQ(cluster.at(0).steps.back().outcome.staleness, 1U);
  EXPECT_THAT(cluster.errors, IsEmpty());
}

TEST(SpeculativeUpdates, AreForgottenWhenTheGradientsEndIsNotFinite) {
  for (const ServerMode mode : {ServerMode::kAsync, ServerMode::kSync}) {
    Cluster cluster(counting(1, mode), in_small_stretches(), 1);
    cluster.gradient = [](Rank, int step, std::span<const float>, std::span<float> out) {
      std::fill(out.begin(), out.end(), -1.0F);
      if (step == 1) out.back() = std::numeric_limits<float>::infinity();
    };
    prepare(cluster, true);
    step_together(cluster, 3);
    EXPECT_EQ(cluster.at(0).steps[1].outcome.kind, PushOutcome::Kind::kRejected);
    EXPECT_EQ(cluster.server->version(), 2U);
    EXPECT_EQ(values_of(cluster), std::vector<float>(8, 2.0F));
    EXPECT_EQ(cluster.at(0).values, values_of(cluster));
  }
}

TEST(SpeculativeUpdates, AreForgottenWhenASumOverflows) {
  Cluster cluster(counting(2, ServerMode::kSync), in_small_stretches(), 1);
  cluster.gradient = [](Rank, int step, std::span<const float>, std::span<float> out) {
    std::fill(out.begin(), out.end(), -1.0F);
    if (step == 1) out[10] = std::numeric_limits<float>::max();
  };
  prepare(cluster, true);
  step_together(cluster, 3);
  EXPECT_EQ(cluster.at(0).steps[1].outcome.kind, PushOutcome::Kind::kRejected);
  EXPECT_EQ(values_of(cluster), std::vector<float>(16, 2.0F));
}

TEST(SpeculativeUpdates, OfARoundAreForgottenWhenAWorkerGoes) {
  Cluster cluster(counting(3, ServerMode::kSync), in_small_stretches(), 1);
  count_pushes(cluster);
  prepare(cluster, true);
  for (Rank rank = 0; rank < 3; ++rank) cluster.start_step(rank);
  for (int frame = 0; frame < 5; ++frame) {
    for (Rank rank = 0; rank < 3; ++rank) cluster.deliver_to_server(rank);
  }
  EXPECT_GT(cluster.sent[ServerFrame::kEarlyValues], 0);
  cluster.disconnect(2);
  cluster.at(2).silent = true;
  cluster.materialize();
  cluster.pass(std::chrono::seconds(4));
  cluster.materialize();
  for (Rank rank = 0; rank < 2; ++rank) {
    EXPECT_TRUE(cluster.end_step(rank));
    EXPECT_EQ(cluster.at(rank).values, values_of(cluster));
  }
  EXPECT_EQ(values_of(cluster)[0], 0.5F);
  EXPECT_EQ(values_of(cluster)[16], 0.0F);
}

// With a fault at each moment of a job in turn: what the workers hold is the model, and every push
// that was acknowledged is in it once.
TEST(SpeculativeUpdates, LoseNothingWhateverBreaksAndWhen) {
  for (const ServerMode mode : {ServerMode::kAsync, ServerMode::kSync}) {
    for (int at = 1; at < 150; at += 2) {
      ServerOptions options = keeping();
      options.speculation_stretch = 3;
      Cluster cluster(counting(2, mode), options, 1);
      count_pushes(cluster);
      cluster.parts = 5;
      cluster.ahead = true;
      cluster.auto_persist = false;
      run_with_fault(cluster, 4, at, [&] {
        if (at % 3 == 0) {
          cluster.crash_server();
          cluster.restart_server();
        } else {
          cluster.disconnect(at % 2);
        }
      });
      EXPECT_GT(cluster.sent[ServerFrame::kEarlyValues], 0);
      EXPECT_THAT(cluster.errors, IsEmpty());
      const std::vector<float> values = values_of(cluster);
      for (Rank rank = 0; rank < 2; ++rank) {
        for (std::size_t step = 0; step < cluster.at(rank).steps.size(); ++step) {
          const bool in = cluster.at(rank).steps[step].outcome.kind == PushOutcome::Kind::kApplied;
          const float value = values[static_cast<std::size_t>(rank) * 8 + step];
          const float each = mode == ServerMode::kAsync ? 1.0F : 0.5F;
          EXPECT_EQ(value, in ? each : 0.0F) << "fault at " << at;
        }
      }
    }
  }
}

}  // namespace
}  // namespace cohort::server
