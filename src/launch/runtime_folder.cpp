#include "launch/runtime_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "network/sockets.h"

namespace cohort::launch {
namespace {

// What is wrong with a folder, or "".
std::string folder_fault(const std::string& path) {
  const network::Descriptor folder(
      ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (folder.get() < 0 || ::fstat(folder.get(), &status) != 0) {
    if (errno == ELOOP || errno == ENOTDIR) return "it is a link or not a folder";
    return std::strerror(errno);
  }
  if (status.st_uid != ::geteuid()) return "it belongs to another user";
  if ((status.st_mode & 0777) != 0700) return "its mode is not 0700";
  return "";
}

}  // namespace

std::string private_folder(const Variable& variable, const std::string& fallback) {
  const char* runtime = variable("XDG_RUNTIME_DIR");
  if (runtime != nullptr && runtime[0] == '/' && folder_fault(runtime).empty()) return runtime;
  const bool made = ::mkdir(fallback.c_str(), 0700) == 0;
  const std::string fault = made || errno == EEXIST ? folder_fault(fallback) : std::strerror(errno);
  if (!fault.empty()) {
    throw ConfigError("processes of one job cannot meet in " + fallback + ": " + fault +
                      "; set XDG_RUNTIME_DIR to a folder of yours with mode 0700");
  }
  return fallback;
}

std::string fallback_folder() { return "/tmp/cohort-" + std::to_string(::geteuid()); }

}  // namespace cohort::launch
