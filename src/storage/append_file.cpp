#include "storage/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/failpoint.h"
#include "storage/file.h"

namespace cohort::storage {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{64} * 1024;

// 0, or the errno value of the write that failed.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::write(descriptor, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return 0;
}

}  // namespace

AppendFile::AppendFile(std::filesystem::path path) : path_(std::move(path)) {
  COHORT_FAILPOINT("append.open");
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw_file_error(errno, "opening", path_);
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    throw FileError(path_.string() + " is not a regular file");
  }
  flushed_ = static_cast<std::uint64_t>(status.st_size);
}

AppendFile::~AppendFile() {
  write_all(descriptor_, buffer_);
  ::close(descriptor_);
}

void AppendFile::append_line(std::string_view line) {
  buffer_ += line;
  buffer_ += '\n';
  if (buffer_.size() >= kBufferBytes) flush();
}

void AppendFile::flush() {
  if (buffer_.empty()) return;
  const std::string lines = std::exchange(buffer_, {});
  COHORT_FAILPOINT("append.write");
  if (const int error = write_all(descriptor_, lines); error != 0) {
    // Should cutting back fail as well, the torn line stays and readers of the log skip it.
    static_cast<void>(::ftruncate(descriptor_, static_cast<off_t>(flushed_)) == 0);
    throw_file_error(error, "writing", path_);
  }
  flushed_ += lines.size();
}

void AppendFile::sync() {
  flush();
  COHORT_FAILPOINT("append.sync");
  if (::fdatasync(descriptor_) != 0) throw_file_error(errno, "making durable", path_);
}

void AppendFile::remake() {
  flush();
  AppendFile fresh(path_);
  fresh.truncate(0);
  std::array<char, kBufferBytes> piece;
  for (std::uint64_t place = 0; place < flushed_;) {
    const ssize_t got = ::pread(descriptor_, piece.data(), piece.size(), static_cast<off_t>(place));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw_file_error(got < 0 ? errno : EIO, "reading", path_);
    const std::string_view text(piece.data(), static_cast<std::size_t>(got));
    if (const int error = write_all(fresh.descriptor_, text); error != 0) {
      throw_file_error(error, "writing", path_);
    }
    place += text.size();
  }
  std::swap(descriptor_, fresh.descriptor_);
}

void AppendFile::truncate(std::uint64_t length) {
  flush();
  if (length > flushed_) {
    throw FileError(path_.string() + " is too short: " + std::to_string(length) +
                    " bytes expected, " + std::to_string(flushed_) + " found");
  }
  COHORT_FAILPOINT("append.truncate");
  if (::ftruncate(descriptor_, static_cast<off_t>(length)) != 0) {
    throw_file_error(errno, "truncating", path_);
  }
  flushed_ = length;
}

}  // namespace cohort::storage
