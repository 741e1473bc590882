// A second implementation of rounds of local steps, in double precision and without ranks: what
// tests hold methods/local_rounds.h to.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "methods/group.h"

namespace cohort::methods {

// What is left of the optimizer's own state by a round.
enum class SlotsAfter { kKept, kMean, kZero };

struct RoundsReference {
  std::string method;
  std::string optimizer = "sgd";
  config::SettingValues own = {};
  SlotsAfter slots = SlotsAfter::kKept;
  // The outer step: changes x and u by the change d at the rate lr.
  std::function<void(at::Tensor& x, at::Tensor& u, const at::Tensor& d, double lr)> outer;
};

// Trains three ranks both ways, at a rate that changes, and compares their parameters.
inline void expect_rounds(const RoundsReference& reference) {
  constexpr int kRanks = 3;
  constexpr Step kEvery = 4;
  constexpr Step kSteps = 3 * kEvery;
  const ReplicaOptions settings{.optimizer = reference.optimizer, .weight_decay = 0.01};
  const auto rate = [](Step step) { return 0.05 / (1 + 0.1 * static_cast<double>(step)); };
  const auto batch = [](Rank rank, Step step) {
    return tiny_batch(100 * static_cast<std::uint64_t>(rank + 1) +
                      static_cast<std::uint64_t>(step));
  };

  std::vector<std::unique_ptr<TinyModel>> models;
  std::vector<std::unique_ptr<Replica>> replicas;
  for (Rank rank = 0; rank < kRanks; ++rank) {
    models.push_back(std::make_unique<TinyModel>(1));
    replicas.push_back(std::make_unique<Replica>(*models.back(), settings));
  }
  const auto mean = [&](const std::function<at::Tensor(const Replica&)>& part) {
    at::Tensor sum = part(*replicas[0]).to(at::kDouble);
    for (Rank rank = 1; rank < kRanks; ++rank) {
      sum = sum + part(*replicas[static_cast<std::size_t>(rank)]);
    }
    return sum / kRanks;
  };
  at::Tensor x = replicas[0]->parameters().to(at::kDouble, false, true);
  at::Tensor u = at::zeros_like(x);
  for (Step step = 0; step < kSteps; ++step) {
    for (Rank rank = 0; rank < kRanks; ++rank) {
      const auto index = static_cast<std::size_t>(rank);
      replicas[index]->begin_step();
      replicas[index]->begin_pass(true);
      tiny_loss(*models[index], batch(rank, step)).backward();
      replicas[index]->finish_backward();
      replicas[index]->apply_gradients(rate(step));
    }
    if ((step + 1) % kEvery != 0) continue;
    const at::Tensor change = x - mean([](const Replica& each) { return each.parameters(); });
    reference.outer(x, u, change, rate(step));
    for (std::size_t slot = 0; slot < replicas[0]->slots().size(); ++slot) {
      const at::Tensor average = mean([slot](const Replica& each) { return each.slots()[slot]; });
      for (const auto& each : replicas) {
        if (reference.slots == SlotsAfter::kMean) each->slots()[slot].copy_(average);
        if (reference.slots == SlotsAfter::kZero) each->slots()[slot].zero_();
      }
    }
    for (const auto& each : replicas) each->parameters().copy_(x);
  }

  Channels channels(kRanks);
  run_group(channels, [&](Rank rank) {
    TinyModel model(static_cast<std::uint64_t>(rank + 1));
    Replica replica(model, settings);
    MethodOptions options = channels.options(rank);
    options.own = reference.own;
    options.own["average-every"] = Step{kEvery};
    options.own["check-replicas"] = Step{kEvery};
    const auto method = methods().make(reference.method, options);
    method->start(replica);
    for (Step step = 0; step < kSteps; ++step) {
      const std::uint64_t before = options.gradients->traffic().sent;
      take_step(model, replica, *method, {step, rate(step)}, {batch(rank, step)});
      EXPECT_EQ(options.gradients->traffic().sent > before, (step + 1) % kEvery == 0);
    }
    EXPECT_LT((replica.parameters() - x).abs().max().item<double>(), 2e-6) << "rank " << rank;
  });
}

}  // namespace cohort::methods
