// One checkpoint: a folder with
//
//   model.safetensors   parameters and buffers under their model names
//   state.safetensors   what the optimizer and the method remember
//   manifest.json       the step, a hash for every tensor and the engine's own state (manifest.h)
//
// Loading checks everything: a checkpoint that loads is the one that was saved, bit for bit.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/types.h"
#include "storage/safetensors.h"

namespace cohort::storage {

// What to save. Owns no tensor data; it must stay unchanged until the save returns.
struct CheckpointContents {
  Step step = 0;
  std::vector<TensorView> model;
  std::vector<TensorView> state;
  nlohmann::json extra;  // any JSON without NaN and infinity; null when there is nothing to say
};

struct LoadedCheckpoint {
  Step step = 0;
  std::filesystem::path folder;
  SafetensorsFile model;
  SafetensorsFile state;
  nlohmann::json extra;
};

// Writes the three files into `folder`, which exists and is empty, and makes them durable. The
// arrays are hashed while they are written.
void write_checkpoint(const std::filesystem::path& folder, const CheckpointContents& contents);

// Throws FileError naming the file and what is wrong with it.
LoadedCheckpoint load_checkpoint(const std::filesystem::path& folder);

}  // namespace cohort::storage
