// Snapshots of a parameter server in a folder of its own, written by a thread of their own.
//
// They are checkpoints (storage/checkpoint_store.h): each appears complete or not at all, and the
// newest sound one is loaded. One process uses a folder at a time, which a lock sees to.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "server/parameter_server.h"
#include "storage/checkpoint_store.h"

namespace cohort {

class SnapshotStore {
 public:
  using Written = std::function<void(std::uint64_t id, const std::string& failure)>;

  // Makes the folder if need be. Throws ConfigError when another process has it, FileError when it
  // cannot be made.
  explicit SnapshotStore(const std::filesystem::path& folder);
  ~SnapshotStore();  // finishes the snapshot under way
  SnapshotStore(const SnapshotStore&) = delete;
  SnapshotStore& operator=(const SnapshotStore&) = delete;

  // The newest sound one. `warn` is told of others that are not.
  std::optional<ServerSnapshot> load(const std::function<void(const std::string&)>& warn) const;

  // Begins to write; `written` is called from the store's thread, with an empty text when the
  // snapshot is durable. One that waits is replaced by a newer one and never reported.
  void write(ServerSnapshot snapshot, Written written);

 private:
  struct Work {
    ServerSnapshot snapshot;
    Written written;
  };

  void run();
  void save(const ServerSnapshot& snapshot);

  CheckpointStore store_;
  int lock_ = -1;
  std::mutex mutex_;  // guards the three below
  std::condition_variable changed_;
  std::optional<Work> waiting_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace cohort
