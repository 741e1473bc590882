// From a RunConfig to the objects that train: the one place where settings become parts.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "config/run_config.h"
#include "data/registry.h"
#include "data/sample_order.h"
#include "engine/trainer.h"
#include "methods/replica.h"
#include "models/registry.h"
#include "schedules/learning_rate.h"

namespace cohort {

// Folders in which data sets are looked for, after --data-dir.
using SearchPath = std::vector<std::filesystem::path>;

std::unique_ptr<DataSplits> open_data(const RunConfig& config, const SearchPath& search);

// With initial weights drawn from the seed. Lives in main memory until a Replica moves it.
std::unique_ptr<Model> build_model(const RunConfig& config, const Dataset& data);

// The compute threads to use on `cores` cores when the user left it to us (--threads 0): all of
// them, or one when a step is too little work to be worth waking a second. Depends on nothing that
// varies from run to run.
std::int64_t choose_threads(const RunConfig& config, const Model& model, std::int64_t cores);

bool wants_channels_last(const RunConfig& config, const Model& model);

ReplicaOptions replica_options(const RunConfig& config, const Model& model);

// The order of the configured shard; one batch is one step.
SampleOrder sample_order(const RunConfig& config, const Dataset& train);

Step total_steps(const RunConfig& config, const SampleOrder& order);

std::unique_ptr<LearningRate> build_schedule(const RunConfig& config, const SampleOrder& order);

TrainerOptions trainer_options(const RunConfig& config, const Model& model,
                               const SampleOrder& order);
EvaluatorOptions evaluator_options(const RunConfig& config, const Model& model);

}  // namespace cohort
