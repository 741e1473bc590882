#include "storage/folder.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>
#include <vector>

#include "core/failpoint.h"
#include "storage/file.h"

namespace cohort::storage {
namespace fs = std::filesystem;
namespace {

std::vector<fs::path> entries_with_prefix(const fs::path& folder, std::string_view prefix) {
  std::vector<fs::path> found;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  while (!error && entry != fs::directory_iterator()) {
    if (entry->path().filename().string().starts_with(prefix)) found.push_back(entry->path());
    entry.increment(error);
  }
  return found;
}

}  // namespace

void rename_path(const fs::path& from, const fs::path& to) {
  COHORT_FAILPOINT("file.rename");
  if (::rename(from.c_str(), to.c_str()) != 0) {
    throw_file_error(errno, "renaming " + from.string() + " to", to);
  }
}

void sync_folder(const fs::path& folder) {
  COHORT_FAILPOINT("file.sync_folder");
  const fs::path name = folder.empty() ? fs::path(".") : folder;
  const int descriptor = ::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) throw_file_error(errno, "opening the folder", name);
  const int error = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  // EINVAL: a file system on which folders cannot be synced; it has nothing better to offer.
  if (error != 0 && error != EINVAL) throw_file_error(error, "making durable", name);
}

void remove_leftovers(const fs::path& folder) noexcept {
  try {
    for (const fs::path& leftover : entries_with_prefix(folder, kTemporaryPrefix)) {
      remove_tree(leftover);
    }
  } catch (const std::exception&) {  // out of memory: a leftover does no harm
  }
}

void replace_folder(const fs::path& from, const fs::path& to) {
  COHORT_FAILPOINT("folder.exchange");
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) {
    sync_folder(to.parent_path());
    COHORT_FAILPOINT("folder.remove_exchanged");
    remove_tree(from);  // otherwise a leftover, removed at the next save
    return;
  }
  if (errno == ENOENT) {
    rename_path(from, to);
    sync_folder(to.parent_path());
  } else if (errno == EINVAL || errno == ENOSYS || errno == ENOTSUP) {
    replace_folder_in_two_steps(from, to);
  } else {
    throw_file_error(errno, "exchanging " + from.string() + " with", to);
  }
}

void replace_folder_in_two_steps(const fs::path& from, const fs::path& to) {
  const fs::path aside = set_aside_name(to);
  rename_path(to, aside);
  try {
    rename_path(from, to);
  } catch (...) {
    std::error_code ignored;
    fs::rename(aside, to, ignored);
    throw;
  }
  sync_folder(to.parent_path());
  remove_tree(aside);
}

fs::path set_aside_name(const fs::path& folder) {
  return folder.parent_path() / (std::string(kSetAsidePrefix) + folder.filename().string());
}

void restore_set_aside(const fs::path& parent) {
  for (const fs::path& aside : entries_with_prefix(parent, kSetAsidePrefix)) {
    const fs::path original = parent / aside.filename().string().substr(kSetAsidePrefix.size());
    std::error_code ignored;
    if (fs::exists(original, ignored)) {
      remove_tree(aside);
    } else {
      rename_path(aside, original);
    }
  }
}

void remove_tree(const fs::path& path) {
  constexpr int kOpenFolders = 16;
  ::nftw(
      path.c_str(),
      [](const char* entry, const struct stat*, int, FTW*) {
        std::remove(entry);
        return 0;
      },
      kOpenFolders, FTW_DEPTH | FTW_PHYS);
}

void discard_folder(const fs::path& folder) {
  const fs::path doomed = folder.parent_path() /
                          (std::string(kTemporaryPrefix) + "removed-" + folder.filename().string());
  remove_tree(doomed);
  rename_path(folder, doomed);
  COHORT_FAILPOINT("folder.discard");
  remove_tree(doomed);
}

}  // namespace cohort::storage
