// Whole runs of several workers as threads of the test.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collectives/shared_memory.h"
#include "engine/small_training.h"
#include "engine/worker.h"
#include "methods/settings.h"
#include "transport/in_process.h"

namespace cohort::engine::test {

inline std::vector<collectives::Membership> memberships(int size) {
  std::vector<std::shared_ptr<Activity>> activities;
  for (Rank rank = 0; rank < size; ++rank) activities.push_back(std::make_shared<Activity>());
  auto control = collectives::make_shared_memory_group(size, activities);
  auto gradients = collectives::make_shared_memory_group(size, activities);
  auto messages = transport::make_in_process_group(size);
  std::vector<collectives::Membership> members(static_cast<std::size_t>(size));
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    members[rank].rank = members[rank].host_rank = static_cast<Rank>(rank);
    members[rank].size = members[rank].host_size = size;
    if (size > 1) {
      members[rank].control = std::move(control[rank]);
      members[rank].gradients = std::move(gradients[rank]);
      members[rank].messages =
          std::make_unique<transport::MeteredTransport>(std::move(messages[rank]));
    }
    members[rank].activity = activities[rank];
  }
  return members;
}

// 101 samples of 1x6x6 for a network without batch normalisation; nothing is saved.
inline config::RunConfig small_run(int workers, std::int64_t batch_of_all,
                                   const std::string& method = "all-reduce") {
  config::RunConfig config;
  config.model = "mlp-100";
  config.data = "synthetic";
  config.synthetic_shape = "1x6x6";
  config.train_size = 101;
  config.test_size = 37;
  config.method = workers == 1 ? "local" : method;
  config.workers = workers;
  config.batch = config.method == "all-reduce" ? batch_of_all / workers : batch_of_all;
  config.threads = 1;
  config.iterations = 50;
  config.eval_every = 0;
  config.eval_batch = 10;
  config.record_every = 10;
  methods::set_setting(config, "check-replicas", Step{5});
  config.peer_timeout = 60;
  config.first_bucket = 0.001;
  config.bucket = "0.005";
  return config;
}

struct RunResult {
  std::vector<at::Tensor> parameters;  // by worker
  std::vector<at::Tensor> statistics;
  std::vector<at::Tensor> momentum;
  std::vector<TrainingOutcome> outcomes;
  std::vector<metrics::StepRecord> records;            // the first worker's
  std::vector<metrics::EvaluationRecord> evaluations;  // likewise
};

struct RunExtras {
  storage::CheckpointStore* store = nullptr;
  bool resume = false;
  const data::DataSplits* data = nullptr;       // instead of the configuration's
  std::function<void(Step)> on_step = nullptr;  // of the last worker
  const std::atomic<bool>* stop = nullptr;      // likewise
  std::function<std::vector<collectives::Membership>(int)> join = memberships;
};

// Where a run that is saved in `store` goes on: `changed` when the batch of all workers is not what
// it was.
inline ResumePoint resume_point(const storage::CheckpointStore& store, bool changed) {
  const auto checkpoint = store.load_latest([](const std::string&) {});
  const nlohmann::json engine = checkpoint->extra.at("engine");
  const nlohmann::json place = engine.at("order").at(changed ? "stands_at" : "started_at");
  return {{place.at(0), place.at(1), place.at(2)}, checkpoint->step, engine.dump(), "the store"};
}

inline RunResult run_group(const config::RunConfig& config, const RunExtras& extras = {}) {
  const auto size = static_cast<std::size_t>(config.workers);
  const auto own_data = open_data(config, {});
  const data::DataSplits* data = extras.data == nullptr ? own_data.get() : extras.data;
  RunResult result;
  result.parameters.resize(size);
  result.statistics.resize(size);
  result.momentum.resize(size);
  result.outcomes.resize(size);
  metrics::MemorySink sink;
  std::optional<ResumePoint> resume;
  if (extras.resume) {
    resume = resume_point(*extras.store, false);
    const auto saved = nlohmann::json::parse(resume->engine);
    const std::int64_t before = saved.at("order").at("batch_of_all");
    if (before != batch_of_all(config, static_cast<int>(size))) {
      resume = resume_point(*extras.store, true);
    }
  }
  const std::atomic<bool> never = false;
  auto members = extras.join(static_cast<int>(size));
  run_workers(config, *data, members, resume ? &*resume : nullptr, [&](Worker& worker) {
    const auto at = static_cast<std::size_t>(worker.member().rank);
    RememberedProgress progress;
    metrics::MemorySink discarded;
    TrainerParts parts = worker.parts(*data, worker.is_first() ? sink : discarded, progress);
    TrainerOptions options = worker.options();
    if (worker.is_first()) parts.outlets.checkpoints = extras.store;
    options.save_checkpoints = extras.store != nullptr;
    const bool last = at + 1 == size;
    if (last) progress.on_step = extras.on_step;
    Trainer trainer(parts, options);
    if (resume && worker.is_first()) {
      trainer.resume(*extras.store->load_latest([](const std::string&) {}));
    } else if (resume) {
      trainer.resume_at(resume->step, nlohmann::json::parse(resume->engine), resume->source);
    }
    result.outcomes[at] = trainer.run(last && extras.stop != nullptr ? *extras.stop : never);
    result.parameters[at] = worker.replica().parameters().clone();
    result.statistics[at] = worker.replica().statistics().clone();
    if (!worker.replica().slots().empty()) {
      result.momentum[at] = worker.replica().slots()[0].clone();
    }
  });
  result.records = sink.all<metrics::StepRecord>();
  result.evaluations = sink.all<metrics::EvaluationRecord>();
  return result;
}

inline double distance(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

inline void expect_equal_replicas(const RunResult& result) {
  for (std::size_t rank = 1; rank < result.parameters.size(); ++rank) {
    EXPECT_TRUE(result.parameters[rank].equal(result.parameters[0])) << "rank " << rank;
    EXPECT_TRUE(result.statistics[rank].equal(result.statistics[0])) << "rank " << rank;
  }
}

}  // namespace cohort::engine::test
