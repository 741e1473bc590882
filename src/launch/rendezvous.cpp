#include "launch/rendezvous.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "collectives/process_life.h"
#include "core/error.h"
#include "core/text.h"
#include "network/sockets.h"

namespace cohort {
namespace {

constexpr std::string_view kTitle = "cohort processes 1";
constexpr std::string_view kSuffix = ".job";
constexpr std::size_t kMaxBytes = 1024;

// What is wrong with a folder, or "".
std::string folder_fault(const std::string& path) {
  const Descriptor folder(
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

std::string hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char letter : text) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  }
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

std::string text_of(const Notice& notice) {
  return std::string(kTitle) + "\n" + notice.memory + "\n" + std::to_string(notice.processes) +
         "\n" + std::to_string(notice.workers) + "\n" + std::to_string(notice.pid) + "\n" +
         std::to_string(notice.start) + "\n";
}

// Only what SharedMapping::create() makes: another name must not be opened, nor removed.
bool names_memory(std::string_view name) {
  for (const std::string_view begin : {"/dev/shm/cohort-", "/tmp/cohort-"}) {
    if (name.size() != begin.size() + 6 || name.substr(0, begin.size()) != begin) continue;
    return std::all_of(
        name.begin() + static_cast<std::ptrdiff_t>(begin.size()), name.end(), [](char letter) {
          return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
                 (letter >= 'A' && letter <= 'Z');
        });
  }
  return false;
}

template <class Number>
bool parse(std::string_view text, Number least, Number& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && out >= least;
}

std::optional<Notice> notice_of(std::string_view text) {
  const std::vector<std::string> lines = split(text, '\n');
  Notice notice;
  if (lines.size() != 7 || lines[0] != kTitle || !lines[6].empty() || !names_memory(lines[1]) ||
      !parse(lines[2], 1, notice.processes) || !parse(lines[3], 0, notice.workers) ||
      !parse(lines[4], std::int64_t{1}, notice.pid) ||
      !parse(lines[5], std::uint64_t{0}, notice.start)) {
    return std::nullopt;
  }
  notice.memory = lines[1];
  return notice;
}

// The text of a file that this user wrote; nothing for anything else.
std::optional<std::string> read_own(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_uid != ::geteuid() || status.st_size > static_cast<off_t>(kMaxBytes)) {
    return std::nullopt;
  }
  char buffer[kMaxBytes];
  const ssize_t count = ::read(file.get(), buffer, sizeof buffer);
  if (count < 0) return std::nullopt;
  return std::string(buffer, static_cast<std::size_t>(count));
}

bool lives(const Notice& notice) { return start_of_living_process(notice.pid) == notice.start; }

[[noreturn]] void cannot_write(const std::string& path) {
  throw FileError("cannot write " + path +
                  ", where the processes of this job are to meet: " + std::strerror(errno));
}

void write_file(const std::string& path, const std::string& text) {
  const Descriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.get() < 0) cannot_write(path);
  const ssize_t count = ::write(file.get(), text.data(), text.size());
  if (count == static_cast<ssize_t>(text.size())) return;
  if (count >= 0) errno = ENOSPC;
  const int error = errno;
  ::unlink(path.c_str());
  errno = error;
  cannot_write(path);
}

// Held for moments only, so who has it for longer was stopped.
class FolderLock {
 public:
  FolderLock(const std::string& folder, Deadline deadline)
      : folder_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) {
    if (folder_.get() < 0) cannot_write(folder);
    while (::flock(folder_.get(), LOCK_EX | LOCK_NB) != 0) {
      if ((errno != EWOULDBLOCK && errno != EINTR) || Clock::now() >= deadline) {
        cannot_write(folder);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

 private:
  Descriptor folder_;
};

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

Rendezvous::Rendezvous(std::string folder, const std::string& key)
    : folder_(std::move(folder)),
      prefix_("cohort-" + std::to_string(process_number_space()) + "-"),
      path_(folder_ + "/" + prefix_ + hash_of(key) + std::string(kSuffix)) {}

void Rendezvous::publish(Notice notice, Deadline deadline) {
  notice.pid = ::getpid();
  notice.start = start_of_living_process(notice.pid).value_or(0);
  const FolderLock lock(folder_, deadline);
  if (const std::optional<Notice> other = look()) {
    throw ConfigError("process " + std::to_string(other->pid) +
                      " is starting another job with the same MASTER_PORT and run (" + path_ +
                      "); give this one another MASTER_PORT (torchrun --master_port), or wait "
                      "until the other has started or end it");
  }
  sweep();
  const std::string text = text_of(notice);
  const std::string temporary = path_ + ".new";  // one writer at a time: the lock is held
  write_file(temporary, text);
  if (::rename(temporary.c_str(), path_.c_str()) != 0) cannot_write(path_);
  published_ = text;
}

void Rendezvous::withdraw() noexcept {
  if (published_.empty()) return;
  try {
    const FolderLock lock(folder_, deadline_in(std::chrono::seconds(1)));
    if (read_own(path_) == published_) ::unlink(path_.c_str());
  } catch (const std::exception&) {
    // It is stale from this process's end on, and the next job takes it away.
  }
  published_.clear();
}

std::optional<Notice> Rendezvous::look() const {
  const std::optional<std::string> text = read_own(path_);
  if (!text) return std::nullopt;
  std::optional<Notice> notice = notice_of(*text);
  return notice && lives(*notice) ? notice : std::nullopt;
}

void Rendezvous::sweep() const {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, ignored)) {
    const std::string name = entry.path().filename();
    if (name.rfind(prefix_, 0) != 0 || entry.path().extension() != kSuffix) continue;
    const std::optional<std::string> text = read_own(entry.path());
    const std::optional<Notice> notice = text ? notice_of(*text) : std::nullopt;
    if (!notice || lives(*notice)) continue;
    struct stat status {};
    if (::lstat(notice->memory.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_uid == ::geteuid()) {
      ::unlink(notice->memory.c_str());
    }
    ::unlink(entry.path().c_str());
  }
}

}  // namespace cohort
