#include "runs/host_workers.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "core/error.h"
#include "launch/job_environment.h"

namespace cohort::runs {
namespace {

// A worker that lives holds its file locked.
bool is_held(const std::filesystem::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool held = ::flock(descriptor, LOCK_SH | LOCK_NB) != 0;
  ::close(descriptor);
  return held;
}

}  // namespace

int workers_on_this_host(const std::string& job, Rank rank) {
  namespace fs = std::filesystem;
  try {
    const fs::path folder = fs::path(launch::runtime_folder()) /
                            ("workers-" + std::to_string(std::hash<std::string>()(job)));
    fs::create_directories(folder);
    const fs::path own = folder / std::to_string(rank);
    const int descriptor = ::open(own.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    // Never closed: the lock lasts as long as the process.
    if (descriptor >= 0) ::flock(descriptor, LOCK_EX | LOCK_NB);
    int count = 1;
    for (const fs::directory_entry& each : fs::directory_iterator(folder)) {
      if (each.path() != own && is_held(each.path())) ++count;
    }
    return count;
  } catch (const std::exception&) {  // no such folder: nothing is known
    return 1;
  }
}

}  // namespace cohort::runs
