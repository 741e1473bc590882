// What every update method promises a group of ranks, over the whole registry.
#include <ATen/ops/cat.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "core/error.h"
#include "core/patience.h"
#include "methods/group.h"

namespace cohort::methods {
namespace {

using testing::HasSubstr;

std::vector<std::string> methods_for_groups() {
  std::vector<std::string> names = methods().names();
  std::erase(names, "local");
  // What is promised here is about replicas that learn the same.
  std::erase_if(names, [](const std::string& name) {
    const MethodTraits& traits = traits_of(name);
    return traits.models != MethodTraits::Models::kOne || traits.own_state;
  });
  return names;
}

class InAGroup : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Registry, InAGroup, testing::ValuesIn(methods_for_groups()));

struct Settings {
  int ranks = 3;
  Step steps = 5;
  int passes = 1;
  BucketSizes buckets = {};
  bool tune = false;
  std::uint64_t seed_of_rank = 100;  // batches of rank r at step s: seed_of_rank * (r + 1) + s
  ReplicaOptions replica = {.optimizer_options = {.momentum = 0.9}, .weight_decay = 0.01};
};

struct Outcome {
  std::vector<at::Tensor> parameters;
  std::vector<std::uint64_t> sent;  // bytes on the gradients' channel
};

std::vector<TinyBatch> batches_of(const Settings& settings, Rank rank, Step step) {
  std::vector<TinyBatch> batches;
  for (int pass = 0; pass < settings.passes; ++pass) {
    batches.push_back(tiny_batch(settings.seed_of_rank * static_cast<std::uint64_t>(rank + 1) +
                                 static_cast<std::uint64_t>(step) +
                                 5000 * static_cast<std::uint64_t>(pass)));
  }
  return batches;
}

template <class SomeModel>
Outcome train(const std::string& method, const Settings& settings,
              const std::function<void(SomeModel&, Rank, Step, std::size_t)>& before_pass = {}) {
  Channels channels(settings.ranks);
  Outcome outcome;
  outcome.parameters.resize(static_cast<std::size_t>(settings.ranks));
  outcome.sent.resize(outcome.parameters.size());
  run_group(channels, [&](Rank rank) {
    SomeModel model(static_cast<std::uint64_t>(rank + 1));  // the method makes them equal
    Replica replica(model, settings.replica);
    MethodOptions options = channels.options(rank);
    options.buckets = settings.buckets;
    options.tune_buckets = settings.tune;
    options.own["check-replicas"] = Step{1};
    if (!traits_of(method).in_step()) channels.serve(options, settings.replica, 0.1);
    const auto made = methods().make(method, options);
    made->start(replica);
    for (Step step = 0; step < settings.steps; ++step) {
      take_step(model, replica, *made, {step, 0.1}, batches_of(settings, rank, step),
                [&](std::size_t pass) {
                  if (before_pass) before_pass(model, rank, step, pass);
                });
    }
    made->finish(replica, Ending::kComplete);
    made->materialize(replica);
    outcome.parameters[static_cast<std::size_t>(rank)] = replica.parameters().clone();
    outcome.sent[static_cast<std::size_t>(rank)] = options.gradients->traffic().sent;
  });
  return outcome;
}

// The same in one thread by autograd alone: plain SGD along the mean of the ranks' gradients, where
// a parameter that a rank did not use counts as zero. In the arena's order, last parameter first.
template <class SomeModel>
at::Tensor reference(const Settings& settings, double lr,
                     const std::function<void(SomeModel&, Rank, Step, std::size_t)>& before_pass) {
  SomeModel model(1);
  const auto ranks = static_cast<float>(settings.ranks);
  for (Step step = 0; step < settings.steps; ++step) {
    std::map<std::string, at::Tensor> sums;
    for (Rank rank = 0; rank < settings.ranks; ++rank) {
      const auto batches = batches_of(settings, rank, step);
      for (std::size_t pass = 0; pass < batches.size(); ++pass) {
        before_pass(model, rank, step, pass);
        tiny_loss(model, batches[pass]).backward();
      }
      for (models::Parameter& parameter : model.store().parameters()) {
        at::Tensor& gradient = parameter.value.mutable_grad();
        if (!gradient.defined()) continue;
        at::Tensor& sum = sums[parameter.name];
        sum = sum.defined() ? sum + gradient : gradient.clone();
        gradient.reset();
      }
    }
    const c10::NoGradGuard no_grad;
    for (models::Parameter& parameter : model.store().parameters()) {
      const at::Tensor& sum = sums[parameter.name];
      if (sum.defined()) parameter.value.sub_(sum, lr / ranks);
    }
  }
  std::vector<at::Tensor> parts;
  for (const models::Parameter& parameter : model.store().parameters()) {
    parts.insert(parts.begin(), parameter.value.detach().flatten());
  }
  return at::cat(parts);
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

void expect_equal_on_all(const Outcome& outcome) {
  for (const at::Tensor& each : outcome.parameters) {
    EXPECT_TRUE(each.equal(outcome.parameters[0]));
  }
}

TEST_P(InAGroup, ReplicasAreEqualAfterAnyNumberOfUpdates) {
  for (const int ranks : {2, 3, 5}) {
    for (const Step steps : {0, 1, 2, 7}) {
      expect_equal_on_all(train<TinyModel>(GetParam(), {.ranks = ranks, .steps = steps}));
    }
  }
}

TEST_P(InAGroup, TakesTheExactMeanStep) {
  constexpr int kRanks = 4;
  Channels channels(kRanks);
  std::mt19937 shuffle_seed(9);
  const auto seed = shuffle_seed();
  run_group(channels, [&](Rank rank) {
    TinyModel model;
    Replica replica(model, {.optimizer_options = {.momentum = 0}});
    replica.parameters().fill_(64);
    MethodOptions options = channels.options(rank);
    options.buckets = {.first_bytes = 40, .bytes = 160};
    if (!traits_of(GetParam()).in_step()) {
      channels.serve(options, {.optimizer_options = {.momentum = 0}}, 0.5);
    }
    const auto method = methods().make(GetParam(), options);
    method->start(replica);
    const auto listener = listener_of(replica, *method);
    std::mt19937 random(static_cast<unsigned>(seed + static_cast<unsigned>(rank)));
    double expected = 64;
    for (Step step = 0; step < 6; ++step) {
      // 1, 2, 4, 8 times the element's number modulo 4 plus the step: every sum is exact.
      float* gradients = replica.gradients().data_ptr<float>();
      for (std::int64_t i = 0; i < replica.numel(); ++i) {
        gradients[i] = static_cast<float>((1 << rank) * (i % 4 + step));
      }
      // In another order on each rank and in each step.
      std::vector<std::size_t> order(replica.segments().size());
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::shuffle(order.begin(), order.end(), random);
      for (const std::size_t segment : order) {
        if (listener) listener(replica.segments()[segment].range);
      }
      method->update(replica, {step, 0.5});
      method->before_step(replica);
      expected -= 0.5 * 15.0 / 4 * static_cast<double>(step);
      const float* values = replica.parameters().data_ptr<float>();
      for (std::int64_t i = 0; i < replica.numel(); ++i) {
        const double own = 0.5 * 15.0 / 4 * static_cast<double>((step + 1) * (i % 4));
        ASSERT_EQ(values[i], expected - own) << "rank " << rank << " step " << step << " at " << i;
      }
    }
  });
}

TEST_P(InAGroup, NeitherBucketSizesNorTuningChangeTheBits) {
  const at::Tensor one = train<TinyModel>(GetParam(), {.steps = 30}).parameters[0];
  for (const std::int64_t bytes : {1, 100, 700, 4000}) {
    const auto buckets = BucketSizes{.first_bytes = bytes / 2, .bytes = bytes};
    EXPECT_TRUE(
        train<TinyModel>(GetParam(), {.steps = 30, .buckets = buckets}).parameters[0].equal(one));
  }
  EXPECT_TRUE(train<TinyModel>(GetParam(), {.steps = 30, .tune = true}).parameters[0].equal(one));
}

TEST_P(InAGroup, GivesTheSameBitsTwice) {
  for (const int ranks : {2, 5}) {
    const Settings settings{
        .ranks = ranks, .steps = 8, .buckets = {.first_bytes = 1, .bytes = 300}};
    EXPECT_TRUE(train<TinyModel>(GetParam(), settings)
                    .parameters[0]
                    .equal(train<TinyModel>(GetParam(), settings).parameters[0]));
  }
}

// Layers that some ranks use in some passes and others never; gradients that do not come in the
// arena's order.
TEST_P(InAGroup, FollowsTheGradientsHoweverThePassesDiffer) {
  const auto use = [](BranchingModel& model, Rank rank, Step step, std::size_t pass) {
    model.use_extra = rank == 1 && step % 2 == 0;
    // In the first of two passes only, which the listener is not told of.
    model.use_other = rank == 0 && step != 3 && pass == 0;
  };
  for (const int passes : {1, 2}) {
    for (const std::int64_t bytes : {std::int64_t{1}, std::int64_t{1} << 20}) {
      const Settings settings{.ranks = 3,
                              .steps = 8,
                              .passes = passes,
                              .buckets = {.first_bytes = bytes, .bytes = bytes},
                              .replica = {.optimizer_options = {.momentum = 0}}};
      const Outcome outcome = train<BranchingModel>(GetParam(), settings, use);
      expect_equal_on_all(outcome);
      EXPECT_LT(distance(outcome.parameters[0], reference<BranchingModel>(settings, 0.1, use)),
                1e-5)
          << passes << " passes, buckets of " << bytes;
    }
  }
}

TEST_P(InAGroup, GradientAccumulationSendsOnce) {
  if (!traits_of(GetParam()).in_step()) GTEST_SKIP() << "its bytes do not go by collectives";
  Settings settings{.ranks = 2, .steps = 6, .buckets = {.first_bytes = 64, .bytes = 512}};
  const auto once = train<TinyModel>(GetParam(), settings).sent;
  settings.passes = 4;
  EXPECT_EQ(train<TinyModel>(GetParam(), settings).sent, once);
  EXPECT_GT(once[0], 0U);
}

TEST_P(InAGroup, ARankThatFailsInItsStepEndsTheOthersWithItsReason) {
  if (!traits_of(GetParam()).in_step()) GTEST_SKIP() << "the others go on without it";
  const auto start = Clock::now();
  const auto fail = [](TinyModel&, Rank rank, Step step, std::size_t) {
    if (rank == 1 && step == 3) throw RunError("rank 1 has had enough");
  };
  try {
    train<TinyModel>(GetParam(), {.ranks = 3, .steps = 50}, fail);
    FAIL() << "nothing was thrown";
  } catch (const RunError& error) {
    EXPECT_THAT(error.what(), HasSubstr("has had enough"));
  }
  EXPECT_LT(seconds_between(start, Clock::now()), patiently(20));
}

TEST_P(InAGroup, RefusesRanksWithAnotherModel) {
  if (!traits_of(GetParam()).in_step()) GTEST_SKIP() << "the first to come is in the right";
  Channels channels(2);
  transport::run_ranks(2, [&](Rank rank) {
    std::unique_ptr<models::Model> model = std::make_unique<TinyModel>();
    if (rank == 1) model = std::make_unique<BranchingModel>();
    Replica replica(*model, {});
    const auto method = methods().make(GetParam(), channels.options(rank));
    EXPECT_THROW(method->start(replica), ConfigError);
  });
}

// What one rank does alone between averages is plain training.
TEST(LocalSteps, EqualAHandWrittenReference) {
  constexpr int kRanks = 3;
  constexpr Step kEvery = 4;
  constexpr Step kSteps = 10;  // ends in the middle of a period: materialize() averages
  for (const std::string optimizer : {"sgd", "adam"}) {
    const Settings settings{.ranks = kRanks,
                            .replica = {.optimizer = optimizer, .weight_decay = 0.01}};
    std::vector<std::unique_ptr<TinyModel>> models;
    std::vector<std::unique_ptr<Replica>> replicas;
    for (Rank rank = 0; rank < kRanks; ++rank) {
      models.push_back(std::make_unique<TinyModel>(1));
      replicas.push_back(std::make_unique<Replica>(*models.back(), settings.replica));
    }
    const auto average = [&](const std::function<at::Tensor(const Replica&)>& part) {
      at::Tensor sum = part(*replicas[0]).to(at::kDouble);
      for (Rank rank = 1; rank < kRanks; ++rank) sum = sum + part(*replicas[rank]);
      for (const auto& replica : replicas) part(*replica).copy_(sum / kRanks);
    };
    for (Step step = 0; step < kSteps; ++step) {
      for (Rank rank = 0; rank < kRanks; ++rank) {
        replicas[rank]->begin_step();
        replicas[rank]->begin_pass(true);
        tiny_loss(*models[rank], batches_of(settings, rank, step)[0]).backward();
        replicas[rank]->finish_backward();
        replicas[rank]->apply_gradients(0.05);
      }
      if ((step + 1) % kEvery != 0 && step + 1 != kSteps) continue;
      average([](const Replica& replica) { return replica.parameters(); });
      for (std::size_t slot = 0; slot < replicas[0]->slots().size(); ++slot) {
        average([slot](const Replica& replica) { return replica.slots()[slot]; });
      }
    }

    Channels channels(kRanks);
    run_group(channels, [&](Rank rank) {
      TinyModel model(static_cast<std::uint64_t>(rank + 1));
      Replica replica(model, settings.replica);
      MethodOptions options = channels.options(rank);
      options.own = {{"average-every", Step{kEvery}},
                     {"check-replicas", Step{1}}};  // looks only when they should be equal
      const auto method = methods().make("all-reduce", options);
      method->start(replica);
      for (Step step = 0; step < kSteps; ++step) {
        const std::uint64_t before = options.gradients->traffic().sent;
        take_step(model, replica, *method, {step, 0.05}, batches_of(settings, rank, step));
        EXPECT_EQ(options.gradients->traffic().sent > before, (step + 1) % kEvery == 0);
      }
      method->materialize(replica);
      EXPECT_LT(distance(replica.parameters(), replicas[0]->parameters()), 1e-6) << optimizer;
      for (std::size_t slot = 0; slot < replica.slots().size(); ++slot) {
        EXPECT_LT(distance(replica.slots()[slot], replicas[0]->slots()[slot]), 1e-6) << optimizer;
      }
      const at::Tensor once = replica.parameters().clone();
      method->materialize(replica);
      EXPECT_TRUE(replica.parameters().equal(once)) << "a second call changes nothing";
    });
  }
}

TEST(AllReduce, NotesWhenEachBucketWasReady) {
  Channels channels(2);
  run_group(channels, [&](Rank rank) {
    TinyModel model;
    Replica replica(model, {});
    ArrivalLog log;
    MethodOptions options = channels.options(rank);
    options.buckets = {.first_bytes = 1, .bytes = 1};  // a bucket for each tensor
    options.arrivals = &log;
    const auto method = methods().make("all-reduce", options);
    method->start(replica);
    for (Step step = 0; step < 3; ++step) {
      log.begin(step, 0);
      take_step(model, replica, *method, {step, 0.1}, {tiny_batch(1)});
    }
    const auto steps = log.take();
    ASSERT_EQ(steps.size(), 3U);
    for (const StepArrivals& step : steps) {
      EXPECT_EQ(step.buckets.size(), replica.segments().size());
      EXPECT_TRUE(std::is_sorted(step.buckets.begin(), step.buckets.end()));
    }
  });
}

TEST(AllReduce, AReplicaThatDiffersIsFoundAtTheNextComparison) {
  Channels channels(3);
  std::vector<std::string> found(3);
  run_group(channels, [&](Rank rank) {
    TinyModel model;
    Replica replica(model, {});
    MethodOptions options = channels.options(rank);
    options.own["check-replicas"] = Step{4};
    const auto method = methods().make("all-reduce", options);
    method->start(replica);
    try {
      for (Step step = 0; step < 20; ++step) {
        if (rank == 2 && step == 5) replica.parameters()[17] += 0.5;
        take_step(model, replica, *method, {step, 0.1}, {tiny_batch(1)});
      }
    } catch (const RunError& error) {
      found[static_cast<std::size_t>(rank)] = error.what();
    }
  });
  for (const std::string& message : found) {
    EXPECT_THAT(message, testing::AllOf(HasSubstr("rank 2"), HasSubstr("after step 7")));
  }
}

}  // namespace
}  // namespace cohort::methods
