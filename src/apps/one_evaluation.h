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

namespace cohort {

class OneEvaluation {
 public:
  // Opens and announces the data, and makes the model, with random weights. The configuration is
  // that of a run, of which augmentation, method and workers do not count here.
  explicit OneEvaluation(RunConfig config);

  Model& model() { return *model_; }
  // Take trained weights: of a run, or one of its checkpoints, the latest; or of a file.
  LoadedCheckpoint take_latest(const std::filesystem::path& where);
  void take_file(const std::filesystem::path& file);

  EvaluationRecord on_test_set();

 private:
  RunConfig config_;
  std::unique_ptr<DataSplits> data_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Replica> replica_;
};

}  // namespace cohort
