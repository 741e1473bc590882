// Files that only their owner may read.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace cohort::network {

// Throws ConfigError when it cannot be read, is longer than `limit`, or others can read it.
std::string read_secret_file(const std::filesystem::path& file, std::size_t limit);

// A new file with mode 0600. Throws FileError, also when there is one already.
void write_secret_file(const std::filesystem::path& file, std::string_view content);

}  // namespace cohort::network
