// Gossip and compressed gradients as methods of replicas that really train.
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "methods/group.h"
#include "transport/in_process.h"

namespace cohort {
namespace {

struct Plan {
  std::string method = "choco";
  std::string compressor = "none";
  std::string topology = "ring";
  int ranks = 4;
  Step steps = 8;
  double stepsize = 0.5;
  bool overlap = true;
  Step every = 1;
  double lr = 0.1;
  double ratio = 0.5;
  std::int64_t power_rank = 2;
  double momentum = 0.9;
};

std::vector<at::Tensor> train(const Plan& run) {
  Channels channels(run.ranks);
  auto messages = make_in_process_group(run.ranks);
  std::vector<at::Tensor> parameters(static_cast<std::size_t>(run.ranks));
  run_group(channels, [&](Rank rank) {
    TinyModel model(static_cast<std::uint64_t>(rank + 1));
    Replica replica(model, {.optimizer_options = {.momentum = run.momentum}});
    MethodOptions options = channels.options(rank);
    options.messages = messages[static_cast<std::size_t>(rank)].get();
    options.gossip.method = run.method;
    options.gossip.topology = run.topology;
    options.gossip.compressor = run.compressor;
    options.gossip.compression.ratio = run.ratio;
    options.gossip.stepsize = run.stepsize;
    options.gossip.overlap = run.overlap;
    options.average_every = run.every;
    options.compare_every = 1;
    options.power_rank = run.power_rank;
    if (models_are_averaged(run.method)) options.compare_every = 0;
    const auto method = methods().make(run.method, options);
    struct Leaving {  // as the engine does when a rank fails
      ~Leaving() {
        if (std::uncaught_exceptions() > 0) transport->close();
      }
      Transport* transport;
    };
    method->start(replica);
    const Leaving leaving{options.messages};
    for (Step step = 0; step < run.steps; ++step) {
      const auto seed =
          100 * static_cast<std::uint64_t>(rank + 1) + static_cast<std::uint64_t>(step);
      take_step(model, replica, *method, {step, run.lr}, {tiny_batch(seed)});
    }
    method->finish(replica, Ending::kComplete);
    method->settle(replica);
    parameters[static_cast<std::size_t>(rank)] = replica.parameters().clone();
  });
  return parameters;
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return a.sub(b).abs().max().item<double>();
}

TEST(GossipMethod, AloneIsLocalTrainingBitForBit) {
  const at::Tensor local = train({.method = "local", .ranks = 1})[0];
  for (const std::string& method : methods().names()) {
    if (!workers_have_own_state(method)) continue;
    EXPECT_TRUE(train({.method = method, .ranks = 1})[0].equal(local)) << method;
  }
}

TEST(GossipMethod, HidingTheExchangeChangesNoBit) {
  for (const char* method : {"choco", "dcd", "ecd"}) {
    const char* compressor = std::string(method) == "choco" ? "sign" : "qsgd";
    const auto hidden = train({.method = method, .compressor = compressor});
    const auto shown = train({.method = method, .compressor = compressor, .overlap = false});
    for (std::size_t i = 0; i < hidden.size(); ++i)
      EXPECT_TRUE(hidden[i].equal(shown[i])) << method;
  }
}

TEST(GossipMethod, DPsgdOnACompleteGraphAveragesTheModelsOfEveryStep) {
  const auto models = train({.method = "d-psgd", .topology = "complete", .overlap = false});
  for (const at::Tensor& model : models) EXPECT_LT(largest_difference(model, models[0]), 1e-6);
  // Without momentum the mean of the models moves by the mean of the gradients: all-reduce.
  const auto plain =
      train({.method = "d-psgd", .topology = "complete", .overlap = false, .momentum = 0});
  const auto reduced = train({.method = "all-reduce", .momentum = 0});
  EXPECT_LT(largest_difference(plain[0], reduced[0]), 1e-5);
}

TEST(GossipMethod, WorkersKeepModelsOfTheirOwnThatStayClose) {
  const auto models = train({.method = "choco", .compressor = "sign", .steps = 40, .lr = 0.02});
  const double apart = largest_difference(models[0], models[2]);
  EXPECT_GT(apart, 0);
  EXPECT_LT(apart, 0.2);
}

TEST(GossipMethod, LocalStepsExchangeLess) {
  const auto often = train({.method = "d-psgd", .steps = 8});
  const auto rarely = train({.method = "d-psgd", .steps = 8, .every = 4});
  EXPECT_GT(largest_difference(often[0], rarely[0]), 0);
}

TEST(GossipMethod, DivergingParametersAreReported) {
  try {
    train({.method = "choco", .compressor = "sign", .steps = 60, .lr = 1e6});
    FAIL() << "it did not diverge";
  } catch (const RunError& error) {
    EXPECT_NE(std::string(error.what()).find("diverged; lower --lr"), std::string::npos)
        << error.what();
  }
}

TEST(CompressedMethod, WithoutLossIsAllReduce) {
  // Momentum of the mean is the mean of the momenta.
  const auto exact = train({.method = "all-reduce"});
  const auto dgc = train({.method = "dgc", .compressor = "none"});
  const auto power = train({.method = "power-sgd", .power_rank = 1000});
  EXPECT_LT(largest_difference(dgc[0], exact[0]), 1e-5);
  EXPECT_LT(largest_difference(power[0], exact[0]), 1e-4);
}

TEST(CompressedMethod, ReplicasStayEqual) {
  for (const char* method : {"ef-sign", "sign-sgd", "dgc", "power-sgd"}) {
    for (const Step every : {1, 3}) {
      Plan run{.method = method, .steps = 9, .every = every, .lr = 0.01};
      if (run.method == "dgc") run.compressor = "top-k";
      const auto models = train(run);
      for (const at::Tensor& model : models) EXPECT_TRUE(model.equal(models[0])) << method;
    }
  }
}

// Error feedback: what was sent and what is remembered make up everything that was moved.
TEST(CompressedMethod, EfSignFollowsItsEquations) {
  constexpr int kRanks = 3;
  constexpr double kRate = 0.05;
  const auto found =
      train({.method = "ef-sign", .ranks = kRanks, .steps = 6, .lr = kRate, .momentum = 0});
  TinyModel model(1);
  Replica replica(model, {});
  at::Tensor x = replica.parameters().clone().to(at::kDouble);
  std::vector<at::Tensor> error(kRanks, at::zeros_like(x));
  for (Step step = 0; step < 6; ++step) {
    at::Tensor mean = at::zeros_like(x);
    for (int rank = 0; rank < kRanks; ++rank) {
      replica.parameters().copy_(x);
      const auto seed =
          100 * static_cast<std::uint64_t>(rank + 1) + static_cast<std::uint64_t>(step);
      replica.begin_step();
      replica.begin_pass(true);
      tiny_loss(model, tiny_batch(seed)).backward();
      replica.finish_backward();
      const at::Tensor p = replica.gradients().to(at::kDouble) * kRate + error[rank];
      at::Tensor sent = at::zeros_like(p);
      for (const Replica::Segment& segment : replica.segments()) {
        const at::Tensor part = p.narrow(0, segment.range.begin, segment.range.size);
        const at::Tensor signs = part.ge(0).to(at::kDouble) * 2 - 1;
        sent.narrow(0, segment.range.begin, segment.range.size).copy_(signs * part.abs().mean());
      }
      error[rank] = p - sent;
      mean += sent / kRanks;
    }
    x = x - mean;
  }
  EXPECT_LT(largest_difference(found[0].to(at::kDouble), x), 1e-4);
}

TEST(CompressedMethod, SignsMoveByTheRateWhateverTheGradient) {
  const auto before = train({.method = "sign-sgd", .ranks = 3, .steps = 0, .lr = 0.01});
  const auto after = train({.method = "sign-sgd", .ranks = 3, .steps = 1, .lr = 0.01});
  const at::Tensor move = before[0].sub(after[0]).abs();
  // Three signs: their mean is 1 or a third; of tensors without any gradient nothing moves.
  for (std::int64_t i = 0; i < move.numel(); ++i) {
    const double thirds = move[i].item<double>() / 0.01 * 3;
    EXPECT_NEAR(thirds, std::round(thirds), 1e-3);
    EXPECT_LE(thirds, 3.001);
  }
}

}  // namespace
}  // namespace cohort
