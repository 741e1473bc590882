// Jobs for the tests of the protocol, and what they must come to.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "cluster.h"

namespace cohort::server {

inline JobSpec job(int workers, ServerMode mode, std::int64_t size = 37) {
  JobSpec spec;
  spec.workers = workers;
  spec.size = size;
  spec.mode = mode;
  spec.optimizer = "sgd";
  spec.optimizer_options.momentum = 0.9;
  spec.schedule_options.lr = 0.1;
  if (size > 10) {
    spec.decay = {{.range = {0, 10}, .weight_decay = 1e-2},
                  {.range = {10, size - 10}, .weight_decay = 0}};
  }
  return spec;
}

inline ServerOptions keeping() {
  ServerOptions options;
  options.keeps_state = true;
  return options;
}

// The same updates by hand: the optimizer over whole vectors, with sums in the order of ranks.
struct Reference {
  explicit Reference(const JobSpec& given)
      : spec(given),
        optimizer(optimizers::optimizers().make(spec.optimizer, spec.optimizer_options)),
        schedule(schedules::schedules().make(spec.schedule, spec.schedule_options)),
        parameters(static_cast<std::size_t>(spec.size)),
        slots(optimizer->slots().size(), parameters) {}

  void update(const std::vector<std::vector<float>>& gradients) {
    std::vector<float> sum = gradients.front();
    for (std::size_t k = 1; k < gradients.size(); ++k) {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += gradients[k][i];
    }
    optimizers::UpdateScalars scalars;
    scalars.lr = schedule->at(static_cast<double>(step) / spec.updates_per_epoch);
    scalars.gradient_scale = 1.0 / static_cast<double>(gradients.size());
    scalars.step = step++;
    for (std::size_t i = 0; i < sum.size(); ++i) {
      optimizers::UpdateBlock block{.parameters = std::span(parameters).subspan(i, 1),
                                    .gradients = std::span(sum).subspan(i, 1),
                                    .slots = {}};
      for (std::size_t s = 0; s < slots.size(); ++s)
        block.slots[s] = std::span(slots[s]).subspan(i, 1);
      scalars.weight_decay = 0;
      for (const DecayRange& decay : spec.decay) {
        const auto at = static_cast<std::int64_t>(i);
        if (at >= decay.range.begin && at < decay.range.end()) {
          scalars.weight_decay = decay.weight_decay;
        }
      }
      optimizer->update(block, scalars);
    }
  }

  JobSpec spec;
  std::unique_ptr<optimizers::Optimizer> optimizer;
  std::unique_ptr<schedules::LearningRate> schedule;
  std::vector<float> parameters;
  std::vector<std::vector<float>> slots;
  Step step = 0;
};

inline std::vector<float> values_of(const Cluster& cluster) { return cluster.server->parameters(); }

// What the rounds must have given, from what the workers pushed and were told.
inline std::vector<float> expected_of_rounds(Cluster& cluster) {
  Reference reference(cluster.spec);
  std::copy(cluster.initial.begin(), cluster.initial.end(), reference.parameters.begin());
  for (std::uint64_t base = 0; base < cluster.server->version(); ++base) {
    std::vector<std::vector<float>> round;
    for (const auto& worker : cluster.workers) {
      for (const Cluster::Step& step : worker->steps) {
        if (step.base == base && step.outcome.kind == PushOutcome::Kind::kApplied) {
          round.push_back(step.gradients);
        }
      }
    }
    if (round.empty()) {
      ADD_FAILURE() << "nobody was in round " << base + 1;
      return {};
    }
    reference.update(round);
  }
  return reference.parameters;
}

// All events in a fixed order until every worker has left, with `fault` at one of them.
inline void run_with_fault(Cluster& cluster, int steps, int at, const std::function<void()>& fault,
                           int persist_every = 3) {
  cluster.connect_all();
  for (int event = 0; event < 4000; ++event) {
    if (event == at) fault();
    if (cluster.one_event(steps, persist_every)) continue;
    if (cluster.all_left()) return;
    cluster.notice_closed();
    cluster.connect_all();
    cluster.pass(std::chrono::milliseconds(100));
  }
  ADD_FAILURE() << "not done after the fault at event " << at << ": " << cluster.server->text()
                << "; worker 0 waits for " << cluster.client(0).waits_for();
}

inline JobSpec in_parts(ServerMode mode) {
  JobSpec spec = job(2, mode, 40000);
  spec.total_updates = mode == ServerMode::kSync ? 3 : 0;
  return spec;
}

// Pushes that can be counted in the model: rate 1, and push n of worker w adds 1 at its own place.
inline JobSpec counting(int workers, ServerMode mode) {
  JobSpec spec = job(workers, mode, workers * 8);
  spec.decay.clear();
  spec.optimizer_options.momentum = 0;
  spec.schedule_options.lr = 1;
  return spec;
}

inline void count_pushes(Cluster& cluster) {
  cluster.gradient = [](Rank rank, int step, std::span<const float>, std::span<float> out) {
    std::fill(out.begin(), out.end(), 0.0F);
    out[static_cast<std::size_t>(rank * 8 + step)] = -1.0F;
  };
}

}  // namespace cohort::server
