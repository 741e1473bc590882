#include "collectives/process_life.h"

#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace cohort::collectives {

std::optional<std::uint64_t> start_of_living_process(std::int64_t pid) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%lld/stat", static_cast<long long>(pid));
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) return std::nullopt;
  char text[1024];
  const std::size_t length = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  text[length] = '\0';
  // The name, in parentheses, may hold anything: the fields are counted from its end.
  const char* field = std::strrchr(text, ')');
  if (field == nullptr || std::strlen(field) < 3) return std::nullopt;
  if (field[2] == 'Z' || field[2] == 'X') return std::nullopt;
  for (int i = 0; i < 20 && field != nullptr; ++i) field = std::strchr(field + 1, ' ');
  if (field == nullptr) return std::nullopt;
  return std::strtoull(field, nullptr, 10);
}

std::uint64_t process_number_space() {
  struct stat status {};
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

}  // namespace cohort::collectives
