// A log that grows line by line and can be cut back to where a checkpoint saw it.
//
// Lines are gathered in memory; flush() hands them to the system, sync() makes them durable. Used
// from one thread. All functions throw FileError.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace cohort::storage {

class AppendFile {
 public:
  // Opens for appending; creates the file when it is not there.
  explicit AppendFile(std::filesystem::path path);
  ~AppendFile();  // flushes; what cannot be written then is lost
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // The length in bytes once everything appended is flushed.
  std::uint64_t size() const { return flushed_ + buffer_.size(); }

  // Adds `line` and a line feed. Flushes when much has gathered.
  void append_line(std::string_view line);

  // When the disk refuses, the file is cut back to its length before the call and the gathered
  // lines are dropped, so that the log has neither a torn line nor an unbounded backlog.
  void flush();
  void sync();

  // The file's name is gone: makes it again, with all that was written.
  void remake();

  // Forgets everything after the first `length` bytes. Throws when the file is shorter than that.
  void truncate(std::uint64_t length);

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t flushed_ = 0;
  std::string buffer_;
};

}  // namespace cohort::storage
