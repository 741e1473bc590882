// The checkpoints of one run.
//
//   step-000001200/     one checkpoint (checkpoint.h); the name is the step
//   latest, best        text files: the name of a folder here, a space, and a check of that name
//
// A checkpoint appears at once, complete and durable, or not at all: kill -9, a full disk or a
// power failure at any moment leaves the earlier ones loadable. One process saves; any number may
// load meanwhile, since loading changes nothing on disk.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/types.h"
#include "storage/checkpoint.h"

namespace cohort::storage {

struct StoredCheckpoint {
  Step step = 0;
  std::filesystem::path folder;
};

class CheckpointStore {
 public:
  using Warn = std::function<void(const std::string&)>;

  // Keeps the newest `keep` checkpoints, and the best one besides. Touches nothing yet; the folder
  // is created by the first save. Throws ConfigError when keep < 1.
  CheckpointStore(std::filesystem::path folder, int keep);

  const std::filesystem::path& folder() const { return folder_; }

  // Adds a checkpoint, or replaces the one of the same step, and makes it the latest; with `best`
  // it also becomes the best. Then removes older ones beyond `keep`. Checkpoints of later steps,
  // left from before the run went back to an earlier one, stay and do not count. Throws FileError
  // when the disk does not cooperate: all earlier checkpoints are then as they were.
  void save(const CheckpointContents& contents, bool best);

  // The newest checkpoint that passes every check: first the one `latest` names, then those before
  // it, then those after it. Each one passed over is named to `warn` with the reason. Nothing when
  // there is no checkpoint; FileError listing all of them when none is sound.
  std::optional<LoadedCheckpoint> load_latest(const Warn& warn) const;

  // The checkpoint last saved as best, nothing when there was none. FileError when it is damaged,
  // because another one would not be the best.
  std::optional<LoadedCheckpoint> load_best() const;

  // What is there by name, highest step first, not checked.
  std::vector<StoredCheckpoint> list() const;

 private:
  std::filesystem::path path_of(Step step) const;
  std::optional<Step> read_pointer(const char* name) const;
  void write_pointer(const char* name, Step step) const;
  std::vector<StoredCheckpoint> in_loading_order(const Warn& warn) const;
  void place(const CheckpointContents& contents) const;
  void remove_old(Step saved) const;

  std::filesystem::path folder_;
  int keep_;
};

}  // namespace cohort::storage
