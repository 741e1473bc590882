#include "core/private_folder.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "core/error.h"

namespace cohort {
namespace {

namespace fs = std::filesystem;

constexpr int kTries = 16;

int remove_entry(const char* path, const struct stat*, int, struct FTW*) { return ::remove(path); }

// Not std::filesystem::remove_all: libtorch's wheels export a broken one.
void remove_all_of(const fs::path& folder) {
  ::nftw(folder.c_str(), remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

// The descriptor of a folder that this user owns and nobody uses; else -1.
int lock_unused(const fs::path& folder) {
  const int descriptor =
      ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return -1;
  struct stat held {};
  struct stat named {};
  // Another process may have removed it before it was locked.
  const bool ours = ::fstat(descriptor, &held) == 0 && held.st_uid == ::geteuid() &&
                    ::flock(descriptor, LOCK_EX | LOCK_NB) == 0 &&
                    ::lstat(folder.c_str(), &named) == 0 && named.st_ino == held.st_ino &&
                    named.st_dev == held.st_dev;
  if (ours) return descriptor;
  ::close(descriptor);
  return -1;
}

void remove_left_behind(const fs::path& parent, const std::string& prefix) {
  std::error_code error;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().string().rfind(prefix, 0) != 0) continue;
    const int descriptor = lock_unused(entry->path());
    if (descriptor < 0) continue;
    remove_all_of(entry->path());
    ::close(descriptor);
  }
}

}  // namespace

PrivateFolder::PrivateFolder(const fs::path& parent, const std::string& stem) {
  remove_left_behind(parent, stem + "-");
  for (int i = 0; i < kTries && lock_ < 0; ++i) {
    std::string pattern = (parent / (stem + "-XXXXXX")).string();
    if (::mkdtemp(pattern.data()) == nullptr) {
      throw FileError("cannot make a folder " + pattern + ": " + std::strerror(errno));
    }
    path_ = pattern;
    lock_ = lock_unused(path_);  // or somebody is just removing it
  }
  if (lock_ < 0)
    throw FileError("cannot keep a folder in " + parent.string() + " for this process");
}

PrivateFolder::~PrivateFolder() {
  remove_all_of(path_);
  ::close(lock_);
}

}  // namespace cohort
