#include "apps/one_evaluation.h"

#include <utility>

#include "apps/announcements.h"
#include "apps/checkpoint_choice.h"
#include "engine/assemble.h"
#include "engine/checkpointing.h"

namespace cohort::apps {
namespace {

config::RunConfig alone(config::RunConfig config) {
  config.augment = "none";
  config.method = "local";
  config.workers = 0;
  return config;
}

}  // namespace

OneEvaluation::OneEvaluation(config::RunConfig config)
    : config_(alone(std::move(config))),
      data_(open_announced_data(config_)),
      model_(engine::build_model(config_, *data_->test)) {
  engine::set_compute_threads(config_, *model_);
  replica_ = std::make_unique<methods::Replica>(
      *model_, engine::replica_options(config_, *model_, engine::worker_device(config_, {})));
}

storage::LoadedCheckpoint OneEvaluation::take_latest(const std::filesystem::path& where) {
  storage::LoadedCheckpoint checkpoint = choose_checkpoint(where, "latest");
  engine::restore_model(checkpoint.model, checkpoint.folder.string(), *replica_);
  return checkpoint;
}

void OneEvaluation::take_file(const std::filesystem::path& file) {
  engine::restore_model(storage::SafetensorsFile::open(file), file.string(), *replica_);
}

metrics::EvaluationRecord OneEvaluation::on_test_set() {
  const engine::EvaluatorOptions options =
      engine::evaluator_options(config_, *model_, engine::worker_device(config_, {}));
  const engine::Evaluation result = engine::evaluate(*model_, *data_->test, options);
  metrics::EvaluationRecord record;
  record.split = "test";
  record.loss = result.loss;
  record.top1 = result.top1;
  record.top5 = result.top5;
  record.samples = result.samples;
  record.seconds = result.seconds;
  return record;
}

}  // namespace cohort::apps
