#include "storage/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/failpoint.h"
#include "storage/folder.h"

namespace cohort::storage {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const { return number_; }

 private:
  int number_;
};

std::filesystem::path temporary_name(const std::filesystem::path& path) {
  return path.parent_path() / (std::string(kTemporaryPrefix) + path.filename().string());
}

std::unique_ptr<std::byte[]> allocate(std::size_t size, const std::filesystem::path& path) {
  try {
    return std::make_unique_for_overwrite<std::byte[]>(size);
  } catch (const std::bad_alloc&) {
    throw_file_error(ENOMEM, "reading " + std::to_string(size) + " bytes of", path);
  }
}

}  // namespace

void throw_file_error(int error, std::string_view doing, const std::filesystem::path& path) {
  throw FileError(std::generic_category().message(error) + " while " + std::string(doing) + " " +
                  path.string());
}

FileContent read_file(const std::filesystem::path& path, std::uint64_t limit_bytes) {
  // O_NONBLOCK so that a FIFO in the place of a file is refused below instead of waited for.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number() < 0) throw_file_error(errno, "opening", path);
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) throw_file_error(errno, "examining", path);
  if (!S_ISREG(status.st_mode)) throw FileError(path.string() + " is not a regular file");
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > limit_bytes) {
    throw FileError(path.string() + " is too long: " + std::to_string(size) + " bytes, at most " +
                    std::to_string(limit_bytes) + " expected");
  }

  FileContent content{allocate(size, path), size};
  for (std::size_t done = 0; done < size;) {
    const ssize_t got = ::read(file.number(), content.data.get() + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_file_error(errno, "reading", path);
    if (got == 0) {
      throw FileError(path.string() + " became shorter while it was read: " + std::to_string(size) +
                      " bytes expected, " + std::to_string(done) + " found");
    }
    done += static_cast<std::size_t>(got);
  }
  return content;
}

std::string read_text_file(const std::filesystem::path& path, std::uint64_t limit_bytes) {
  const FileContent content = read_file(path, limit_bytes);
  return {reinterpret_cast<const char*>(content.data.get()), content.size};
}

FileWriter::FileWriter(std::filesystem::path path) : path_(std::move(path)) {
  COHORT_FAILPOINT("file.open");
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor_ < 0) throw_file_error(errno, "creating", path_);
}

FileWriter::~FileWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void FileWriter::write(std::span<const std::byte> bytes) {
  COHORT_FAILPOINT("file.write");
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw_file_error(errno, "writing", path_);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
    size_ += static_cast<std::uint64_t>(put);
  }
}

void FileWriter::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void FileWriter::sync_and_close() {
  COHORT_FAILPOINT("file.sync");
  if (::fsync(descriptor_) != 0) throw_file_error(errno, "making durable", path_);
  close();
}

void FileWriter::close() {
  COHORT_FAILPOINT("file.close");
  // Network file systems report some write errors only here.
  if (::close(std::exchange(descriptor_, -1)) != 0) throw_file_error(errno, "closing", path_);
}

AtomicFile::AtomicFile(std::filesystem::path path)
    : path_(std::move(path)), writer_(temporary_name(path_)) {}

AtomicFile::~AtomicFile() {
  if (!renamed_) ::unlink(writer_.path().c_str());
}

void AtomicFile::commit(Durability durability) {
  durability == Durability::kPower ? writer_.sync_and_close() : writer_.close();
  rename_path(writer_.path(), path_);
  renamed_ = true;
  if (durability == Durability::kPower) sync_folder(path_.parent_path());
}

void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  AtomicFile file(path);
  file.writer().write(bytes);
  file.commit();
}

void write_file_atomically(const std::filesystem::path& path, std::string_view text) {
  write_file_atomically(path, std::as_bytes(std::span(text)));
}

}  // namespace cohort::storage
