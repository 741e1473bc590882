// Where the workers of a job with servers keep their runs, when each is a process of its own: the
// first one in the folder NAME, worker N in NAME-workerN beside it, and a server that keeps the
// best model in NAME-server; where nobody gave a name, the server's is kUnnamedServer and a number.
#pragma once

#include <filesystem>
#include <optional>

#include "core/types.h"

namespace cohort::storage {

inline constexpr const char* kUnnamedServer = "swamp-server";

// The folder of worker `rank` when the first one's is `run`, which may end with a slash.
std::filesystem::path worker_folder(const std::filesystem::path& run, Rank rank);

// The folder of the job's server.
std::filesystem::path server_folder(const std::filesystem::path& run);

struct WorkerFolder {
  std::filesystem::path run;  // the first worker's folder
  Rank rank = 0;              // 1 or more
};

// Back; nothing when `folder` is not named so.
std::optional<WorkerFolder> parse_worker_folder(const std::filesystem::path& folder);

// Likewise, the first worker's folder of the job whose server's is `folder`.
std::optional<std::filesystem::path> parse_server_folder(const std::filesystem::path& folder);

}  // namespace cohort::storage
