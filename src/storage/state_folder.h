// What a process has to find again after a crash, in a folder of its own, written by a thread of
// its own.
//
// Snapshots are checkpoints (storage/checkpoint_store.h): each appears complete or not at all, and
// the newest sound one is loaded. One process uses a folder at a time, which a lock sees to.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "storage/checkpoint_store.h"

namespace cohort::storage {

// Owns what it shows. Loaded as it was written.
struct StateSnapshot {
  std::uint64_t id = 0;  // counts up; below 2^63
  bool newest = true;    // false when it was loaded because newer ones are damaged
  nlohmann::json extra = {};
  std::vector<std::pair<std::string, std::shared_ptr<const std::vector<float>>>> vectors = {};

  // Null where there is none of that name.
  std::shared_ptr<const std::vector<float>> find(const std::string& name) const;
};

class StateFolder {
 public:
  // From the folder's thread; an empty text when the snapshot is durable.
  using Written = std::function<void(std::uint64_t id, const std::string& failure)>;

  // Makes the folder if need be. Throws ConfigError when another process has it, FileError when it
  // cannot be made.
  explicit StateFolder(const std::filesystem::path& folder);
  ~StateFolder();  // finishes the snapshot under way
  StateFolder(const StateFolder&) = delete;
  StateFolder& operator=(const StateFolder&) = delete;

  // The newest sound one. `warn` is told of others that are not. Throws FileError.
  std::optional<StateSnapshot> load(const std::function<void(const std::string&)>& warn) const;

  // Begins to write. One that waits is replaced by a newer one and never reported.
  void write(StateSnapshot snapshot, Written written);

 private:
  struct Work {
    StateSnapshot snapshot;
    Written written;
  };

  void run();
  void save(const StateSnapshot& snapshot);

  CheckpointStore store_;
  int lock_ = -1;
  std::mutex mutex_;  // guards the two below
  std::optional<Work> waiting_;
  bool stopping_ = false;
  std::condition_variable changed_;
  std::thread thread_;
};

}  // namespace cohort::storage
