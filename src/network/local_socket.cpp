#include "network/local_socket.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>

#include "core/error.h"

namespace cohort::network {
namespace {

constexpr std::time_t kYoung = 10;  // seconds

// The paths of the sockets of all processes that share this one's network.
std::set<std::string> paths_in_use() {
  std::set<std::string> paths;
  std::ifstream table("/proc/net/unix");
  for (std::string line; std::getline(table, line);) {
    if (const auto path = line.find('/'); path != std::string::npos)
      paths.insert(line.substr(path));
  }
  return paths;
}

}  // namespace

std::string local_socket_path(const std::string& folder, const Address& address) {
  const std::string host = address.host == "localhost" ? "127.0.0.1" : address.host;
  return folder + "/" + host + "-" + std::to_string(address.port) + ".sock";
}

bool is_private_folder(const std::string& folder) {
  struct stat about {};
  return ::lstat(folder.c_str(), &about) == 0 && S_ISDIR(about.st_mode) &&
         about.st_uid == ::geteuid() && (about.st_mode & 077) == 0;
}

void make_private_folder(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    throw ConfigError("cannot make the folder " + folder + " for sockets: " + std::strerror(errno));
  }
  if (!is_private_folder(folder)) {
    throw ConfigError(folder +
                      " must be a folder of this user that is closed to all others (mode 0700, no "
                      "link); name another, or remove it");
  }
}

void remove_left_sockets(const std::string& folder) {
  const std::set<std::string> in_use = paths_in_use();
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string path = entry->path().string();
    if (in_use.contains(path)) continue;  // to try it would be noted there
    struct stat about {};
    if (::lstat(path.c_str(), &about) != 0 || !S_ISSOCK(about.st_mode)) continue;
    // One that was made just now may not listen yet.
    if (std::time(nullptr) - about.st_mtime < kYoung || !fits_unix_address(path)) continue;
    if (nobody_listens_at(path)) ::unlink(path.c_str());
  }
}

LocalSocket::LocalSocket(const std::string& path) : descriptor_(listen_at_path(path)) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) return;
  path_ = path;
  device_ = about.st_dev;
  node_ = about.st_ino;
}

LocalSocket& LocalSocket::operator=(LocalSocket&& other) noexcept {
  if (this != &other) {
    remove();
    descriptor_ = std::move(other.descriptor_);
    path_ = std::exchange(other.path_, {});
    device_ = other.device_;
    node_ = other.node_;
  }
  return *this;
}

void LocalSocket::remove() {
  struct stat about {};
  if (!path_.empty() && ::stat(path_.c_str(), &about) == 0 && about.st_dev == device_ &&
      about.st_ino == node_) {
    ::unlink(path_.c_str());
  }
  path_.clear();
}

}  // namespace cohort::network
