// A simulated group is the real one.
#include "engine/simulation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "engine/worker_runs.h"

namespace cohort::engine::test {
namespace {

config::RunConfig gossip(const std::string& method, int workers) {
  config::RunConfig config = small_run(workers, 24, method);
  config.model = "resnet8";
  config.synthetic_shape = "3x8x8";
  config.lr = 0.01;
  config.iterations = 9;
  config.record_every = 3;
  config.consensus_stepsize = "0.3";
  return config;
}

std::vector<SimulatedMoment> simulate(const config::RunConfig& config, int threads) {
  config::RunConfig own = config;
  own.threads = threads;
  const auto data = open_data(own, {});
  Simulation simulation(own, *data);
  std::vector<SimulatedMoment> moments;
  const std::atomic<bool> never = false;
  simulation.run(never, [&](const SimulatedMoment& moment) { moments.push_back(moment); });
  return moments;
}

TEST(Simulation, EqualsRealWorkers) {
  for (const char* method : {"choco", "d-psgd", "dcd"}) {
    SCOPED_TRACE(method);
    config::RunConfig config = gossip(method, 4);
    if (config.method == "choco") config.compressor = "sign";
    const RunResult real = run_group(config);
    const auto simulated = simulate(config, 2);
    ASSERT_FALSE(real.evaluations.empty());
    const metrics::EvaluationRecord& found = real.evaluations.back();
    ASSERT_TRUE(simulated.back().average);
    EXPECT_NEAR(simulated.back().average->loss, found.loss, 1e-5);
    EXPECT_NEAR(simulated.back().consensus_distance, *found.consensus_distance,
                1e-4 * *found.consensus_distance + 1e-7);
    std::uint64_t sent = 0;
    for (const TrainingOutcome& outcome : real.outcomes) sent += outcome.traffic.sent;
    std::uint64_t simulated_bytes = 0;
    for (const SimulatedMoment& moment : simulated) simulated_bytes += moment.bytes_sent;
    EXPECT_EQ(sent, simulated_bytes);
  }
}

TEST(Simulation, DoesNotDependOnThreads) {
  const auto one = simulate(gossip("choco", 6), 1);
  const auto three = simulate(gossip("choco", 6), 3);
  ASSERT_EQ(one.size(), three.size());
  EXPECT_EQ(one.back().average->loss, three.back().average->loss);
  EXPECT_EQ(one.back().consensus_distance, three.back().consensus_distance);
}

TEST(Simulation, IsForGossip) {
  config::RunConfig config = gossip("all-reduce", 4);
  config.consensus_stepsize = "auto";
  EXPECT_THROW(simulate(config, 1), ConfigError);
  EXPECT_THROW(simulate(gossip("choco", 1), 1), ConfigError);
}

}  // namespace
}  // namespace cohort::engine::test
