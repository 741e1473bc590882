// Snapshots of a parameter server in a folder of its own (storage/state_folder.h).
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "server/parameter_server.h"
#include "storage/state_folder.h"

namespace cohort::serving {

class SnapshotStore {
 public:
  // As StateFolder.
  explicit SnapshotStore(const std::filesystem::path& folder) : folder_(folder) {}

  std::optional<server::ServerSnapshot> load(
      const std::function<void(const std::string&)>& warn) const;
  void write(server::ServerSnapshot snapshot, storage::StateFolder::Written written);

 private:
  storage::StateFolder folder_;
};

}  // namespace cohort::serving
