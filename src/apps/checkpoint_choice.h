// Which checkpoint of a run a command means.
#pragma once

#include <filesystem>
#include <string>

#include "storage/checkpoint_store.h"

namespace cohort::apps {

// `where` is a run directory or one checkpoint's folder; `which` is best, latest or a step number
// (and ignored for a single checkpoint). A run that was never evaluated has no best: its latest is
// taken. Throws ConfigError when there is no such checkpoint, FileError when it is damaged.
storage::LoadedCheckpoint choose_checkpoint(const std::filesystem::path& where,
                                            const std::string& which);

// The run directory that `where`, a run or one of its checkpoints, belongs to.
std::filesystem::path run_of(const std::filesystem::path& where);

}  // namespace cohort::apps
