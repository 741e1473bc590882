// Whole files: read with a limit, written so that a crash never leaves half of one.
//
// Every failure is a FileError that says what went wrong, during what, and to which file: "No space
// left on device while writing runs/a/run.json". A file is written under a temporary name beginning
// with kTemporaryPrefix in the folder where it will live, made durable, and renamed; readers see
// the old content or the new one, nothing between. One writer per path at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace cohort::storage {

inline constexpr std::string_view kTemporaryPrefix = ".tmp-";

// Throws FileError from `error`, an errno value.
[[noreturn]] void throw_file_error(int error, std::string_view doing,
                                   const std::filesystem::path& path);

// The content of a regular file in memory that was not zeroed first: checkpoints are large.
struct FileContent {
  std::unique_ptr<std::byte[]> data;
  std::size_t size = 0;

  std::span<const std::byte> bytes() const { return {data.get(), size}; }
  std::span<const std::uint8_t> octets() const {
    return {reinterpret_cast<const std::uint8_t*>(data.get()), size};
  }
};

// Throws FileError when the path is missing, not a regular file, longer than `limit_bytes`, or
// shrinks while it is read.
FileContent read_file(const std::filesystem::path& path, std::uint64_t limit_bytes);
std::string read_text_file(const std::filesystem::path& path, std::uint64_t limit_bytes);

// Writes a new file from front to back. The file stays as it is when the writer is destroyed early.
class FileWriter {
 public:
  // Creates the file, or empties the one that is there.
  explicit FileWriter(std::filesystem::path path);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return size_; }  // bytes written so far

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);

  // Afterwards the content survives a power failure; the name does so only after sync_folder().
  // This or close() is called once, last.
  void sync_and_close();
  void close();  // when losing the content in a power failure is no great harm

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

// What a file that was written survives.
enum class Durability {
  kProcess,  // the end of this process, however it comes
  kPower,    // the machine's too
};

// Replaces a file as a whole. Until commit() returns the old file is untouched; a writer destroyed
// without commit() leaves no trace.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  FileWriter& writer() { return writer_; }

  // As durable as asked, name included, when it returns. When it throws, the path holds the old
  // content or the new one.
  void commit(Durability durability = Durability::kPower);

 private:
  std::filesystem::path path_;
  FileWriter writer_;
  bool renamed_ = false;
};

void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_file_atomically(const std::filesystem::path& path, std::string_view text);

}  // namespace cohort::storage
