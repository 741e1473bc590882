#include "collectives/shared_mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace cohort::collectives {
namespace {

// A file descriptor that is closed when its mapping is made; the mapping lives on.
class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

std::byte* map(int descriptor, std::size_t bytes, const std::string& name) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (data == MAP_FAILED) {
    throw RunError("cannot map " + std::to_string(bytes) + " bytes of " + name + ": " +
                   std::strerror(errno));
  }
  return static_cast<std::byte*>(data);
}

}  // namespace

SharedMapping SharedMapping::create(std::size_t bytes) {
  std::string failures;
  // The folder of shm_open() by its name, so that both places are handled alike.
  for (const char* folder : {"/dev/shm", "/tmp"}) {
    std::string name = std::string(folder) + "/cohort-XXXXXX";
    const File file(mkostemp(name.data(), O_CLOEXEC));  // mode 0600, never an existing file
    int error = file.get() < 0 ? errno : 0;
    if (error == 0) {
      error = posix_fallocate(file.get(), 0, static_cast<off_t>(bytes));
      if (error == 0) return {name, map(file.get(), bytes, name), bytes, true};
      unlink(name.c_str());
    }
    failures += std::string(failures.empty() ? "" : "; ") + folder + ": " + std::strerror(error);
  }
  throw RunError("no room for " + std::to_string(bytes >> 20) +
                 " MiB that processes of this host share (" + failures +
                 "); free some, or use fewer workers on this host");
}

SharedMapping SharedMapping::open(const std::string& name, std::size_t bytes) {
  const File file(::open(name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  struct stat status {};
  if (file.get() < 0 || fstat(file.get(), &status) != 0) {
    throw RunError("cannot open " + name +
                   ", which a process of this host made to share: " + std::strerror(errno));
  }
  if (status.st_uid != geteuid() || !S_ISREG(status.st_mode) ||
      static_cast<std::size_t>(status.st_size) != bytes) {
    throw RunError(name + " is not what processes of this job share: it has " +
                   std::to_string(status.st_size) + " bytes, not " + std::to_string(bytes) +
                   ", or another owner");
  }
  return {name, map(file.get(), bytes, name), bytes, false};
}

SharedMapping::SharedMapping(SharedMapping&& other) noexcept
    : name_(std::move(other.name_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(other.size_),
      named_(std::exchange(other.named_, false)) {}

SharedMapping::~SharedMapping() {
  remove_name();
  if (data_ != nullptr) munmap(data_, size_);
}

void SharedMapping::remove_name() {
  if (named_) unlink(name_.c_str());
  named_ = false;
}

}  // namespace cohort::collectives
