#include "network/secret_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "network/sockets.h"

namespace cohort::network {

std::string read_secret_file(const std::filesystem::path& file, std::size_t limit) {
  const Descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about {};
  if (!opened || ::fstat(opened.get(), &about) != 0) {
    throw ConfigError("cannot read " + file.string() + ": " + std::strerror(errno));
  }
  if (!S_ISREG(about.st_mode)) throw ConfigError(file.string() + " is not a file");
  if ((about.st_mode & 077) != 0) {
    throw ConfigError("others than its owner can read " + file.string() + "; run: chmod 600 " +
                      file.string());
  }
  std::string content(limit + 1, '\0');
  const ssize_t size = ::read(opened.get(), content.data(), content.size());
  if (size < 0) throw ConfigError("cannot read " + file.string() + ": " + std::strerror(errno));
  if (static_cast<std::size_t>(size) > limit) throw ConfigError(file.string() + " is too long");
  content.resize(static_cast<std::size_t>(size));
  return content;
}

void write_secret_file(const std::filesystem::path& file, std::string_view content) {
  const Descriptor made(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!made) {
    throw FileError("cannot write " + file.string() + ": " +
                    (errno == EEXIST ? "it is there already" : std::strerror(errno)));
  }
  if (::write(made.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size()) ||
      ::fsync(made.get()) != 0) {
    const int error = errno;
    ::unlink(file.c_str());
    throw FileError("cannot write " + file.string() + ": " + std::strerror(error));
  }
}

}  // namespace cohort::network
