// What a best-model server knows of networks and data: it evaluates the models that are offered.
//
// Draw 0 is the validation set, which workers do not train on; draw n the n-th random sample of the
// training set, check_samples large. Lives on the server's examining thread.
#pragma once

#include <memory>

#include "config/run_config.h"
#include "data/dataset.h"
#include "methods/replica.h"
#include "storage/dump_writer.h"
#include "swamp/examiner.h"

namespace cohort::engine {

class SwampExaminer final : public swamp::Examiner {
 public:
  // `train` is the workers' training set, without augmentation; it outlives the examiner.
  SwampExaminer(const config::RunConfig& config, const data::Dataset& train);
  ~SwampExaminer() override;

  std::vector<float> losses(std::span<const float> model, std::uint64_t draw) override;

  // The model by the names of its tensors.
  storage::DumpContent named(std::span<const float> model);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace cohort::engine
