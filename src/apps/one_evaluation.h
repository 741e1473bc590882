// One evaluation of one model, as dialects make it with --evaluate.
#pragma once

#include <filesystem>
#include <memory>

#include "config/run_config.h"
#include "data/registry.h"
#include "methods/replica.h"
#include "metrics/records.h"
#include "models/model.h"
#include "storage/checkpoint.h"

namespace cohort::apps {

class OneEvaluation {
 public:
  // Opens and announces the data, and makes the model, with random weights. The configuration is
  // that of a run, of which augmentation, method and workers do not count here.
  explicit OneEvaluation(config::RunConfig config);

  models::Model& model() { return *model_; }
  // Take trained weights: of a run, or one of its checkpoints, the latest; or of a file.
  storage::LoadedCheckpoint take_latest(const std::filesystem::path& where);
  void take_file(const std::filesystem::path& file);

  metrics::EvaluationRecord on_test_set();

 private:
  config::RunConfig config_;
  std::unique_ptr<data::DataSplits> data_;
  std::unique_ptr<models::Model> model_;
  std::unique_ptr<methods::Replica> replica_;
};

}  // namespace cohort::apps
