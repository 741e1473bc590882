#include "storage/worker_folder.h"

#include <charconv>

namespace cohort::storage {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = "-worker";
constexpr std::string_view kServerSuffix = "-server";

fs::path without_slash(const fs::path& folder) {
  return folder.has_filename() ? folder : folder.parent_path();
}

}  // namespace

fs::path worker_folder(const fs::path& run, Rank rank) {
  if (rank <= 0) return run;
  return without_slash(run) += std::string(kSuffix) + std::to_string(rank);
}

fs::path server_folder(const fs::path& run) {
  return without_slash(run) += std::string(kServerSuffix);
}

std::optional<WorkerFolder> parse_worker_folder(const fs::path& folder) {
  const fs::path whole = without_slash(folder);
  const std::string name = whole.filename().string();
  const std::size_t at = name.rfind(kSuffix);
  if (at == std::string::npos || at == 0) return std::nullopt;
  WorkerFolder result{whole.parent_path() / name.substr(0, at), 0};
  const char* end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + at + kSuffix.size(), end, result.rank);
  // Not "-worker01": there is one folder for each worker.
  if (parsed.ec != std::errc{} || parsed.ptr != end || result.rank < 1) return std::nullopt;
  if (worker_folder(result.run, result.rank) != whole) return std::nullopt;
  return result;
}

std::optional<fs::path> parse_server_folder(const fs::path& folder) {
  const fs::path whole = without_slash(folder);
  const std::string name = whole.filename().string();
  if (!name.ends_with(kServerSuffix) || name.size() == kServerSuffix.size()) return std::nullopt;
  return whole.parent_path() / name.substr(0, name.size() - kServerSuffix.size());
}

}  // namespace cohort::storage
