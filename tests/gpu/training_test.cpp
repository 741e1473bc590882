// Whole runs on a GPU: beside the CPU, recorded beside given anew, interrupted beside calm.
#include <gtest/gtest.h>
#include <torch/cuda.h>

#include <cmath>

#include "engine/worker_runs.h"
#include "launch/threads_job.h"

namespace cohort::test {
namespace {

config::RunConfig gpu_run(const std::string& model = "resnet20") {
  config::RunConfig config;
  config.model = model;
  config.data = "synthetic";
  config.synthetic_shape = "3x16x16";
  config.train_size = 200;  // an epoch of six batches of 32 and one of 8
  config.test_size = 64;
  config.method = "local";
  config.workers = 1;
  config.batch = 32;
  config.threads = 1;
  config.lr = 0.01;
  config.momentum = 0.9;
  config.weight_decay = 1e-4;
  config.schedule = "cosine";
  config.iterations = 21;
  config.eval_every = 1;
  config.eval_batch = 32;
  config.record_every = 5;
  config.device = "cuda";
  return config;
}

// Of workers that share the GPU.
std::vector<collectives::Membership> on_one_gpu(int workers) {
  return launch::make_threads_job({.workers = workers, .messages = true, .shared_gpu = 0})->join();
}

double last_loss(const engine::test::RunResult& result) { return result.records.back().loss; }

class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!torch::cuda::is_available()) GTEST_SKIP() << "needs a GPU";
  }
};

TEST_F(OnGpu, TrainsAsOnTheCpu) {
  config::RunConfig config = gpu_run();
  const engine::test::RunResult gpu = engine::test::run_group(config);
  config.device = "cpu";
  const engine::test::RunResult cpu = engine::test::run_group(config);
  ASSERT_EQ(gpu.records.size(), cpu.records.size());
  EXPECT_NEAR(gpu.records.front().loss, cpu.records.front().loss, 1e-3);
  EXPECT_NEAR(last_loss(gpu), last_loss(cpu), 0.02);
  for (std::size_t i = 0; i < gpu.records.size(); ++i) {
    EXPECT_EQ(gpu.records[i].samples, cpu.records[i].samples);
    EXPECT_GT(gpu.records[i].compute_seconds, 0);
    EXPECT_GT(gpu.records[i].update_seconds, 0);
  }
}

// The sums of a backward pass may be added in another order from run to run, so the bits of two
// recorded runs differ no more than those of two runs without a recording.
TEST_F(OnGpu, RecordedStepsAreTheSteps) {
  for (const char* precision : {"fp32", "bf16"}) {
    config::RunConfig config = gpu_run();
    config.precision = precision;
    const engine::test::RunResult recorded = engine::test::run_group(config);
    config.graph = false;
    const engine::test::RunResult anew = engine::test::run_group(config);
    const engine::test::RunResult again = engine::test::run_group(config);
    const double noise = engine::test::distance(anew.parameters[0], again.parameters[0]);
    EXPECT_LE(engine::test::distance(recorded.parameters[0], anew.parameters[0]), 3 * noise + 1e-6)
        << precision;
    EXPECT_NEAR(last_loss(recorded), last_loss(anew), 1e-3 + 0.02 * (noise > 0)) << precision;
  }
}

TEST_F(OnGpu, DropoutOfARecordedStepIsDrawnAnew) {
  config::RunConfig config = gpu_run("vgg11");
  config.synthetic_shape = "3x32x32";
  config.dropout = 0.5;
  config.lr = 0;  // only dropout changes the loss
  config.schedule = "constant";
  config.train_size = 32;
  config.record_every = 1;
  const engine::test::RunResult recorded = engine::test::run_group(config);
  config.graph = false;
  const engine::test::RunResult anew = engine::test::run_group(config);
  ASSERT_EQ(recorded.records.size(), anew.records.size());
  for (std::size_t i = 1; i < recorded.records.size(); ++i) {
    EXPECT_NE(recorded.records[i].loss, recorded.records[i - 1].loss) << i;
    EXPECT_NEAR(recorded.records[i].loss, anew.records[i].loss, 1e-5) << i;
  }
}

TEST_F(OnGpu, LowerPrecisionsLearnAsWell) {
  config::RunConfig config = gpu_run();
  config.iterations = 70;
  const engine::test::RunResult full = engine::test::run_group(config);
  for (const char* precision : {"tf32", "bf16"}) {
    config.precision = precision;
    const engine::test::RunResult lower = engine::test::run_group(config);
    EXPECT_EQ(lower.parameters[0].scalar_type(), at::kFloat);
    EXPECT_NEAR(last_loss(lower), last_loss(full), 0.25) << precision;
    EXPECT_NEAR(lower.evaluations.back().loss, full.evaluations.back().loss, 0.5) << precision;
  }
}

TEST_F(OnGpu, GoesOnFromACheckpointBetweenRecordedSteps) {
  for (const char* precision : {"fp32", "bf16"}) {
    config::RunConfig config = gpu_run();
    config.precision = precision;
    config.checkpoint_every = 7;
    const engine::test::RunResult calm = engine::test::run_group(config);
    storage::test::TemporaryFolder folder;
    storage::CheckpointStore store(folder / "run", 3);
    std::atomic<bool> stop = false;
    engine::test::run_group(
        config, {.store = &store, .on_step = [&](Step done) { stop = done >= 11; }, .stop = &stop});
    const engine::test::RunResult resumed =
        engine::test::run_group(config, {.store = &store, .resume = true});
    EXPECT_EQ(resumed.outcomes[0].steps, 21);
    EXPECT_NEAR(last_loss(resumed), last_loss(calm), 0.05) << precision;
  }
}

TEST_F(OnGpu, WorkersThatShareItKeepInStep) {
  for (const char* method : {"all-reduce", "choco"}) {
    config::RunConfig config = gpu_run();
    config.method = method;
    config.workers = 4;
    config.precision = "bf16";
    const engine::test::RunResult result = engine::test::run_group(config, {.join = on_one_gpu});
    EXPECT_TRUE(std::isfinite(last_loss(result))) << method;
    if (config.method == "all-reduce") engine::test::expect_equal_replicas(result);
  }
}

// All in step: the same batches give the same model, up to the order of sums.
TEST_F(OnGpu, WorkersThatShareItSumAsOnTheCpu) {
  config::RunConfig config = gpu_run();
  config.method = "all-reduce";
  config.workers = 4;
  config.batch = 8;
  config.iterations = 5;
  const engine::test::RunResult gpu = engine::test::run_group(config, {.join = on_one_gpu});
  config.device = "cpu";
  const engine::test::RunResult cpu = engine::test::run_group(config);
  engine::test::expect_equal_replicas(gpu);
  EXPECT_NEAR(last_loss(gpu), last_loss(cpu), 5e-3);
}

struct GossipCase {
  const char* method;
  const char* compressor;
};
constexpr GossipCase kGossip[] = {
    {"d-psgd", "none"}, {"d-psgd", "bf16"},    {"choco", "none"}, {"choco", "sign"},
    {"choco", "fp16"},  {"dcd", "none"},       {"ecd", "none"},   {"deep-squeeze", "sign"},
    {"choco", "top-k"}, {"choco", "random-k"}, {"choco", "qsgd"}};

// Without convolutions, whose sums come in another order from run to run.
config::RunConfig gossip_run(const GossipCase& one) {
  config::RunConfig config = gpu_run("mlp-100");
  config.method = one.method;
  config.compressor = one.compressor;
  if (methods::traits_of(config.method).stepsize != methods::MethodTraits::Stepsize::kNone) {
    config.consensus_stepsize = "0.4";
  }
  config.workers = 4;
  return config;
}

// The way through main memory is the CPU's own. The signs of differences that are next to nothing
// may come out otherwise, of which a message carries the mean magnitude.
TEST_F(OnGpu, WorkersThatShareItGossipAsThroughMainMemory) {
  for (const GossipCase& one : kGossip) {
    const config::RunConfig config = gossip_run(one);
    const engine::test::RunResult there = engine::test::run_group(config, {.join = on_one_gpu});
    const engine::test::RunResult through = engine::test::run_group(config);
    for (std::size_t rank = 0; rank < 4; ++rank) {
      const at::Tensor difference = there.parameters[rank] - through.parameters[rank];
      EXPECT_LE(difference.norm().item<double>(),
                1e-4 * through.parameters[rank].norm().item<double>())
          << one.method << ' ' << one.compressor << ", rank " << rank;
    }
    ASSERT_EQ(there.records.size(), through.records.size());
    // Of these there is counted what they can take at most.
    const std::string compressor = one.compressor;
    const double more = compressor == "top-k" ? 1.05 : compressor == "qsgd" ? 2.5 : 1;
    for (std::size_t i = 0; i < there.records.size(); ++i) {
      const metrics::StepRecord& here = through.records[i];
      EXPECT_GE(there.records[i].bytes_sent, here.bytes_sent) << compressor;
      EXPECT_LE(there.records[i].bytes_sent, more * static_cast<double>(here.bytes_sent));
      EXPECT_LE(there.records[i].bytes_received, more * static_cast<double>(here.bytes_received));
    }
  }
}

TEST_F(OnGpu, WorkersThatShareItGossipAsOnTheCpu) {
  for (const GossipCase& one : kGossip) {
    config::RunConfig config = gossip_run(one);
    config.iterations = 5;
    const engine::test::RunResult gpu = engine::test::run_group(config, {.join = on_one_gpu});
    config.device = "cpu";
    const engine::test::RunResult cpu = engine::test::run_group(config);
    EXPECT_NEAR(last_loss(gpu), last_loss(cpu), 5e-3) << one.method << ' ' << one.compressor;
  }
}

// There, to the same bits, and in main memory: a checkpoint holds the same for both.
TEST_F(OnGpu, GossipThereGoesOnFromACheckpoint) {
  const std::pair<std::vector<collectives::Membership> (*)(int), double> ways[] = {
      {on_one_gpu, 0}, {engine::test::memberships, 1e-3}};
  for (const GossipCase& one : kGossip) {
    config::RunConfig config = gossip_run(one);
    config.checkpoint_every = 7;
    const engine::test::RunResult calm = engine::test::run_group(config, {.join = on_one_gpu});
    for (const auto& [join, tolerance] : ways) {
      storage::test::TemporaryFolder folder;
      storage::CheckpointStore store(folder / "run", 3);
      std::atomic<bool> stop = false;
      engine::test::run_group(config, {.store = &store,
                                       .on_step = [&](Step done) { stop = done >= 11; },
                                       .stop = &stop,
                                       .join = on_one_gpu});
      const engine::test::RunResult resumed =
          engine::test::run_group(config, {.store = &store, .resume = true, .join = join});
      for (std::size_t rank = 0; rank < 4; ++rank) {
        EXPECT_LE(engine::test::distance(resumed.parameters[rank], calm.parameters[rank]),
                  tolerance)
            << one.method << ' ' << one.compressor << ", rank " << rank;
      }
    }
  }
}

TEST_F(OnGpu, GossipThereSaysWhenParametersAreInfinite) {
  config::RunConfig config = gossip_run({"choco", "sign"});
  config.lr = 1e30;
  EXPECT_THROW(engine::test::run_group(config, {.join = on_one_gpu}), RunError);
}

TEST_F(OnGpu, ALossThatIsNoNumberNamesItsStep) {
  config::RunConfig config = gpu_run();
  config.lr = 1e30;
  try {
    engine::test::run_group(config);
    FAIL() << "it went on";
  } catch (const RunError& error) {
    EXPECT_NE(std::string(error.what()).find("training has diverged"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace cohort::test
