// Gossip and compressed gradients as methods of replicas that really train.
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "methods/group.h"
#include "transport/metered.h"

namespace cohort::methods {
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
  std::vector<at::Tensor> parameters(static_cast<std::size_t>(run.ranks));
  run_group(channels, [&](Rank rank) {
    TinyModel model(static_cast<std::uint64_t>(rank + 1));
    Replica replica(model, {.optimizer_options = {.momentum = run.momentum}});
    MethodOptions options = channels.options(rank);
    options.gossip.method = run.method;
    options.gossip.topology = run.topology;
    options.gossip.compressor = run.compressor;
    options.gossip.compression.ratio = run.ratio;
    options.gossip.stepsize = run.stepsize;
    options.gossip.overlap = run.overlap;
    options.own = {{"average-every", run.every},
                   {"check-replicas", Step{1}},
                   {"power-rank", run.power_rank},
                   {"mask-momentum", false}};
    const auto method = methods().make(run.method, options);
    struct Leaving {  // as the engine does when a rank fails
      ~Leaving() {
        if (std::uncaught_exceptions() > 0) transport->close();
      }
      transport::Transport* transport;
    };
    method->start(replica);
    const Leaving leaving{options.messages};
    for (Step step = 0; step < run.steps; ++step) {
      const auto seed =
          100 * static_cast<std::uint64_t>(rank + 1) + static_cast<std::uint64_t>(step);
      take_step(model, replica, *method, {step, run.lr}, {tiny_batch(seed)});
    }
    method->finish(replica, Ending::kComplete);
    method->materialize(replica);
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
    if (!traits_of(method).own_state) continue;
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

// Gives every rank gradients by hand, element by element, and returns the replica of rank 0 and
// what its method remembers.
struct SmallSteps {
  std::string method;
  double lr = 0;
  double momentum = 0;
  double weight_decay = 0;
  Step steps = 4;
  std::function<double(Rank, std::int64_t)> gradient;
  at::Tensor before, after, memory = {};

  static constexpr int kRanks = 3;

  void run() {
    class Memory final : public StateVisitor {
     public:
      void tensor(const std::string& name, const at::Tensor& tensor) override {
        if (name == "compressed.error") found = tensor.clone();
      }
      void number(const std::string&, std::int64_t&) override {}
      at::Tensor found;
    };
    Channels channels(kRanks);
    run_group(channels, [&](Rank rank) {
      TinyModel model(1);
      Replica replica(model,
                      {.optimizer_options = {.momentum = momentum}, .weight_decay = weight_decay});
      MethodOptions options = channels.options(rank);
      options.gossip.compressor = "top-k";
      options.gossip.compression.ratio = 0.5;
      options.own["mask-momentum"] = false;
      const auto made = methods().make(method, options);
      made->start(replica);
      if (rank == 0) before = replica.parameters().to(at::kDouble);
      float* gradients = replica.gradients().data_ptr<float>();
      for (Step step = 0; step < steps; ++step) {
        for (std::int64_t i = 0; i < replica.numel(); ++i) {
          gradients[i] = static_cast<float>(gradient(rank, i));
        }
        made->update(replica, {step, lr});
      }
      if (rank != 0) return;
      after = replica.parameters().to(at::kDouble);
      Memory visitor;
      made->visit_state(visitor);
      memory = visitor.found;
    });
  }
};

// A step of 1e-8 beside parameters of 1 is below their last bit.
TEST(CompressedMethod, SignsAreThoseOfTheStepHoweverSmall) {
  constexpr double kRate = 1e-5;
  const auto gradient = [](Rank rank, std::int64_t i) {
    return (i + rank) % 5 == 0 ? 0.0 : 1e-3 * static_cast<double>((i * 7 + rank * 3) % 11 - 5.5);
  };
  for (const double decay : {0.0, 1e-4}) {
    for (const double momentum : {0.0, 0.9}) {
      SmallSteps small{.method = "sign-sgd",
                       .lr = kRate,
                       .momentum = momentum,
                       .weight_decay = decay,
                       .gradient = gradient,
                       .before = {},
                       .after = {}};
      small.run();
      for (std::int64_t i = 0; i < small.before.numel(); ++i) {
        double x = small.before[i].item<double>();
        double m[SmallSteps::kRanks] = {};
        for (Step step = 0; step < small.steps; ++step) {
          double signs = 0;
          for (Rank rank = 0; rank < SmallSteps::kRanks; ++rank) {
            m[rank] = momentum * m[rank] + gradient(rank, i) + decay * x;
            signs += m[rank] > 0 ? 1 : m[rank] < 0 ? -1 : 0;
          }
          x -= kRate * signs / SmallSteps::kRanks;
        }
        EXPECT_NEAR(small.after[i].item<double>(), x, 0.1 * kRate)
            << i << " decay " << decay << " momentum " << momentum;
      }
    }
  }
}

TEST(CompressedMethod, RemembersStepsThatAreLostInTheParameters) {
  // Top-k of a half sends the even elements of a tensor; the odd ones are remembered.
  SmallSteps sparse{.method = "dgc",
                    .lr = 1e-6,
                    .steps = 10,
                    .gradient = [](Rank, std::int64_t i) { return i % 2 == 0 ? 1.0 : 1e-3; },
                    .before = {},
                    .after = {}};
  sparse.run();
  int remembered = 0;
  for (std::int64_t i = 1; i < sparse.memory.numel(); i += 2) {
    const double value = sparse.memory[i].item<double>();
    if (value == 0) continue;  // in a tensor with an odd number of elements one more is sent
    EXPECT_NEAR(value, 10 * 1e-9, 1e-13) << i;
    ++remembered;
  }
  EXPECT_GT(remembered, sparse.memory.numel() / 3);

  // Signs times the mean magnitude: e = p - sign(p) mean |p|, by tensor.
  const auto gradient = [](Rank rank, std::int64_t i) {
    const double sizes[] = {1e-3, 2.3e-3, 4.1e-3};  // nothing cancels
    return sizes[(i + rank) % 3];
  };
  SmallSteps signs{
      .method = "ef-sign", .lr = 1e-6, .gradient = gradient, .before = {}, .after = {}};
  signs.run();
  TinyModel model(1);
  const Replica replica(model, {});
  for (const Replica::Segment& segment : replica.segments()) {
    std::vector<double> error(static_cast<std::size_t>(segment.range.size));
    for (Step step = 0; step < signs.steps; ++step) {
      double mean = 0;
      for (std::size_t i = 0; i < error.size(); ++i) {
        error[i] += 1e-6 * gradient(0, segment.range.begin + static_cast<std::int64_t>(i));
        mean += std::abs(error[i]) / static_cast<double>(error.size());
      }
      for (double& each : error) each -= each >= 0 ? mean : -mean;
    }
    for (std::size_t i = 0; i < error.size(); ++i) {
      const auto place = segment.range.begin + static_cast<std::int64_t>(i);
      EXPECT_NEAR(signs.memory[place].item<double>(), error[i], 1e-13) << segment.name;
    }
  }
}

}  // namespace
}  // namespace cohort::methods
