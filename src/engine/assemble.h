// From a RunConfig to the objects that train: the one place where settings become parts.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "collectives/membership.h"
#include "config/run_config.h"
#include "data/registry.h"
#include "data/sample_order.h"
#include "engine/trainer.h"
#include "methods/replica.h"
#include "models/registry.h"
#include "schedules/learning_rate.h"

namespace cohort::engine {

// Which worker of the run something is built for.
struct WorkerPlace {
  Rank rank = 0;
  int size = 1;
  int host_rank = 0;  // among the workers of its host
};

// `search`: when there is no --data-dir. A text is cut into a column for each sample of
// batch_of_all(): config.workers must be known.
std::unique_ptr<data::DataSplits> open_data(const config::RunConfig& config,
                                            const data::SearchPath& search);

// With initial weights drawn from the seed. Lives in main memory until a Replica moves it. A worker
// that gets its weights from the first one need not draw them.
enum class InitialWeights { kFromSeed, kLater };
std::unique_ptr<models::Model> build_model(const config::RunConfig& config,
                                           const data::Dataset& data,
                                           InitialWeights weights = InitialWeights::kFromSeed);

// The compute threads a worker is to use when it has `cores` cores for itself and the user left it
// to us (--threads 0): all of them, or one when a step is too little work to be worth waking a
// second. Depends on nothing that varies from run to run.
std::int64_t choose_threads(const config::RunConfig& config, const models::Model& model,
                            std::int64_t cores);

// Gives libtorch the threads that the configuration asks for, and writes a choice left to us into
// it, so that run.json repeats it. Workers that share this host share its cores.
void set_compute_threads(config::RunConfig& config, const models::Model& model,
                         int workers_here = 1);

bool wants_channels_last(const config::RunConfig& config, const models::Model& model);
// What a model computes in. Throws ConfigError where `device` cannot.
at::ScalarType compute_type(const config::RunConfig& config, at::Device device);

// The device that a worker computes on. Throws ConfigError when --device or --world name one that
// is not there.
at::Device worker_device(const config::RunConfig& config, const WorkerPlace& place);

methods::ReplicaOptions replica_options(const config::RunConfig& config, const models::Model& model,
                                        at::Device device);

// A worker's order; one batch is one step. `start`: where a run that goes on stands.
data::SampleOrder sample_order(const config::RunConfig& config, const data::Dataset& train,
                               const WorkerPlace& place,
                               const std::optional<data::OrderStart>& resumed = std::nullopt);

// How many samples at the end of the training set workers leave alone, for comparisons of their
// models. Throws ConfigError when too few are left.
std::int64_t validation_size(const config::RunConfig& config, const data::Dataset& train);

// How long to wait for a worker that is late.
std::chrono::nanoseconds patience(const config::RunConfig& config);

// Samples of all workers in one step.
std::int64_t batch_of_all(const config::RunConfig& config, int workers);

Step total_steps(const config::RunConfig& config, const data::SampleOrder& order);

// `access`, which says where the servers are, with what they are told of the job.
methods::ServerAccess server_access(const config::RunConfig& config, const data::SampleOrder& order,
                                    methods::ServerAccess access);

// How workers gossip. A step size that is left to us is 1 here.
gossip::GossipSettings gossip_settings(const config::RunConfig& config);

// Writes a consensus step size that was left to us into the configuration: found by simulation,
// the same for the same settings. `largest_tensor`: elements of the model's. Throws ConfigError
// when there is none.
void choose_stepsize(config::RunConfig& config, int workers, std::int64_t largest_tensor);
std::int64_t largest_tensor(const models::Model& model);

// What a worker's method is built from. The caller adds the logs and the servers.
methods::MethodOptions method_options(const config::RunConfig& config,
                                      const collectives::Membership& member);

// That of worker `rank`: with --lr-scale-by graph it depends on the number of its neighbours.
std::unique_ptr<schedules::LearningRate> build_schedule(const config::RunConfig& config,
                                                        const data::SampleOrder& order,
                                                        Rank rank = 0);

TrainerOptions trainer_options(const config::RunConfig& config, const models::Model& model,
                               const data::SampleOrder& order, const WorkerPlace& place);
EvaluatorOptions evaluator_options(const config::RunConfig& config, const models::Model& model,
                                   at::Device device);

}  // namespace cohort::engine
