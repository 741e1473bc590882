#include "apps/one_evaluation.h"

#include <utility>

#include "apps/announcements.h"
#include "apps/checkpoint_choice.h"
#include "engine/assemble.h"
#include "engine/checkpointing.h"

namespace cohort {
namespace {

RunConfig alone(RunConfig config) {
  config.augment = "none";
  config.method = "local";
  config.workers = 0;
  return config;
}

}  // namespace

OneEvaluation::OneEvaluation(RunConfig config)
    : config_(alone(std::move(config))),
      data_(open_announced_data(config_)),
      model_(build_model(config_, *data_->test)) {
  set_compute_threads(config_, *model_);
  replica_ = std::make_unique<Replica>(
      *model_, replica_options(config_, *model_, worker_device(config_, {})));
}

LoadedCheckpoint OneEvaluation::take_latest(const std::filesystem::path& where) {
  LoadedCheckpoint checkpoint = choose_checkpoint(where, "latest");
  restore_model(checkpoint.model, checkpoint.folder.string(), *replica_);
  return checkpoint;
}

void OneEvaluation::take_file(const std::filesystem::path& file) {
  restore_model(SafetensorsFile::open(file), file.string(), *replica_);
}

EvaluationRecord OneEvaluation::on_test_set() {
  const EvaluatorOptions options = evaluator_options(config_, *model_, worker_device(config_, {}));
  const Evaluation result = evaluate(*model_, *data_->test, options);
  EvaluationRecord record;
  record.split = "test";
  record.loss = result.loss;
  record.top1 = result.top1;
  record.top5 = result.top5;
  record.samples = result.samples;
  record.seconds = result.seconds;
  return record;
}

}  // namespace cohort
