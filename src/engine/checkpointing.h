// Between the tensors of a run and the files of its checkpoints.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/types.h"
#include "engine/worker_states.h"
#include "methods/replica.h"
#include "methods/update_method.h"
#include "storage/checkpoint.h"
#include "storage/dump_writer.h"

namespace cohort::engine {

// Everything a checkpoint holds. It may share memory with the replica: save it before the next
// step.
class Snapshot {
 public:
  // The method must have materialized the model. `extra` is the engine's own state.
  Snapshot(methods::Replica& replica, methods::UpdateMethod& method, Step step,
           nlohmann::json extra);
  // The replica holds the average of the workers' models, and `workers` the state of each.
  Snapshot(methods::Replica& replica, const std::vector<WorkerState>& workers, Step step,
           nlohmann::json extra);
  ~Snapshot();

  // What recurrent models of all workers carry (carried_state.h); undefined: nothing.
  void add_carried(const at::Tensor& of_all);

  const storage::CheckpointContents& contents() const { return contents_; }

 private:
  std::vector<at::Tensor> kept_;  // owns what the contents point to
  storage::CheckpointContents contents_;
};

// A copy of the model for a dump.
storage::DumpContent copy_model(methods::Replica& replica);

// Puts a checkpoint back into a replica and method built for the same configuration. Throws
// FileError when a tensor is missing, of another shape or superfluous.
void restore(const storage::LoadedCheckpoint& checkpoint, methods::Replica& replica,
             methods::UpdateMethod& method);

// What add_carried() was given.
at::Tensor carried_of(const storage::LoadedCheckpoint& checkpoint);

// The parameters and buffers alone, for evaluation and export. Other floating-point types than the
// model's are converted, and whole numbers to other whole numbers.
void restore_model(const storage::SafetensorsFile& file, const std::string& source,
                   methods::Replica& replica);
void restore_model(const storage::SafetensorsFile& file, const std::string& source,
                   models::Model& model);

// Starts from somebody else's weights (`--init`). Every tensor whose name and shape match is taken,
// converted as above; the classifier may differ in the number of classes. Returns lines for the
// user: what was left at its random start, what the file has too much. Throws FileError, which says
// what did not fit, when fewer than half of the parameters get their values from the file.
std::vector<std::string> initialize_from(const std::filesystem::path& path, models::Model& model);

}  // namespace cohort::engine
