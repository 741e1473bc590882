#include "engine/run_directory.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "methods/settings.h"
#include "metrics/json_lines_sink.h"
#include "storage/file.h"
#include "storage/folder.h"
#include "storage/sha256.h"

namespace cohort::engine {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kRunJsonLimit = 16 << 20;
constexpr int kMaxNumber = 100000;

void require_simple_name(const std::string& name) {
  if (name.find('/') != std::string::npos || name == "." || name == "..") {
    throw ConfigError("--name '" + name +
                      "' must be a plain folder name; use --runs-dir for where");
  }
}

constexpr const char* kChecksum = "sha256";

std::string checksum_of(const nlohmann::json& document) { return storage::sha256(document.dump()); }

fs::path make_folder(const fs::path& path) {
  std::error_code error;
  storage::remove_tree(path);  // a killed process's, whose number this one has
  fs::create_directory(path, error);
  if (error) storage::throw_file_error(error.value(), "creating the run directory", path);
  return path;
}

// False when `to` is there and has something in it. A folder with nothing in it is taken over.
bool claims(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return true;
  if (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR) return false;
  storage::throw_file_error(errno, "creating the run directory", to);
}

// Whether nothing in it is worth keeping: no record, no checkpoint, nothing that others put there.
bool is_unused(const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name == "run.json" || name == ".lock") continue;
    const bool empty = (name == "metrics.jsonl" || name == "checkpoints") && fs::is_empty(entry);
    if (!empty) return false;
  }
  return true;
}

}  // namespace

struct RunDirectory::Log {
  explicit Log(fs::path path) : file(std::move(path)) {}

  std::mutex mutex;  // guards the file
  storage::AppendFile file;
};

RunDirectory::RunDirectory(fs::path path) : path_(std::move(path)) {}

RunDirectory::RunDirectory(RunDirectory&& other) noexcept
    : path_(std::move(other.path_)),
      run_json_(std::move(other.run_json_)),
      lock_(std::exchange(other.lock_, -1)),
      log_(std::move(other.log_)),
      metrics_(std::move(other.metrics_)) {}

RunDirectory::~RunDirectory() {
  metrics_.reset();
  log_.reset();
  if (lock_ >= 0) ::close(lock_);
}

RunDirectory RunDirectory::create(const fs::path& parent, const std::string& name,
                                  const std::string& stem, const nlohmann::json& run_json) {
  require_simple_name(name);
  std::error_code error;
  fs::create_directories(parent, error);
  if (error) storage::throw_file_error(error.value(), "creating the folder for runs", parent);
  const std::string hidden =
      fmt::format("{}{}-{}", storage::kTemporaryPrefix, name.empty() ? stem : name, ::getpid());
  RunDirectory run(make_folder(parent / hidden));
  try {
    run.lock();
    run.write_run_json(run_json);
    run.take_name(parent, name, stem);
  } catch (...) {
    storage::remove_tree(run.path_);
    throw;
  }
  return run;
}

void RunDirectory::take_name(const fs::path& parent, const std::string& name,
                             const std::string& stem) {
  const auto takes = [&](const fs::path& path) {
    if (!claims(path_, path)) return false;
    path_ = path;
    return true;
  };
  if (!name.empty()) {
    const fs::path path = parent / name;
    if (takes(path)) return;
    throw ConfigError(path.string() +
                      " exists already: choose another --name, or go on with it by --resume " +
                      path.string());
  }
  for (int number = 1; number <= kMaxNumber; ++number) {
    if (takes(parent / numbered(stem, number))) return;
  }
  throw ConfigError(parent.string() + " is full: give a --name");
}

std::string RunDirectory::numbered(const std::string& stem, int number) {
  return fmt::format("{}-{:03}", stem, number);
}

RunDirectory RunDirectory::open(const fs::path& path) {
  if (!fs::exists(path / "run.json")) {
    throw ConfigError(path.string() + " is not a run directory: it has no run.json");
  }
  RunDirectory run(path);
  run.lock();
  run.run_json_ = storage::read_text_file(path / "run.json", kRunJsonLimit);
  return run;
}

void RunDirectory::lock() {
  const fs::path file = path_ / ".lock";
  lock_ = ::open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  if (lock_ < 0) storage::throw_file_error(errno, "opening", file);
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    throw ConfigError(path_.string() + " is in use by another process");
  }
}

void RunDirectory::write_run_json(const nlohmann::json& content) {
  nlohmann::json document = content;
  document[kChecksum] = checksum_of(content);
  run_json_ = document.dump(2) + "\n";
  storage::write_file_atomically(path_ / "run.json", run_json_);
}

std::optional<std::string> RunDirectory::remake_if_gone() {
  struct stat held {};
  struct stat named {};
  if (::fstat(lock_, &held) == 0 && ::stat((path_ / ".lock").c_str(), &named) == 0 &&
      held.st_dev == named.st_dev && held.st_ino == named.st_ino &&
      fs::exists(path_ / "run.json")) {
    return std::nullopt;
  }
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) storage::throw_file_error(error.value(), "creating the run directory", path_);
  const int before = std::exchange(lock_, -1);
  lock();
  ::close(before);
  storage::write_file_atomically(path_ / "run.json", run_json_);
  if (log_ != nullptr) {
    const std::lock_guard guard(log_->mutex);
    log_->file.remake();
  }
  return "warning: " + path_.string() +
         " was removed or moved during the run; it is made again, with its settings and records. "
         "Earlier checkpoints are gone from there";
}

void RunDirectory::write_summary(const nlohmann::json& content) {
  storage::write_file_atomically(path_ / "summary.json", content.dump(2) + "\n");
}

void RunDirectory::discard_if_unused() noexcept {
  try {
    if (is_unused(path_)) storage::discard_folder(path_);
  } catch (const std::exception&) {  // it stays
  }
}

metrics::MetricsSink& RunDirectory::metrics() {
  if (metrics_ == nullptr) {
    log_ = std::make_unique<Log>(path_ / "metrics.jsonl");
    metrics_ = std::make_unique<metrics::JsonLinesSink>(
        [log = log_.get()](std::string_view line) {
          const std::lock_guard lock(log->mutex);
          log->file.append_line(line.substr(0, line.size() - 1));  // it brings its own line feed
          log->file.flush();
        },
        [log = log_.get()] {
          const std::lock_guard lock(log->mutex);
          log->file.sync();
        });
  }
  return *metrics_;
}

void RunDirectory::rewind_metrics(std::uint64_t bytes) {
  metrics();
  const std::lock_guard lock(log_->mutex);
  if (log_->file.size() > bytes) log_->file.truncate(bytes);
}

std::uint64_t RunDirectory::metrics_bytes() const {
  const std::lock_guard lock(log_->mutex);
  return log_->file.size();
}

void RunDirectory::repair_metrics() {
  metrics();
  std::ifstream log(path_ / "metrics.jsonl", std::ios::binary);
  std::uint64_t whole = metrics_bytes();
  const auto ends_a_line = [&] {
    log.seekg(static_cast<std::streamoff>(whole) - 1);
    return log.get() == '\n';
  };
  while (whole > 0 && log && !ends_a_line()) --whole;
  if (log) rewind_metrics(whole);
}

nlohmann::json read_run_json(const fs::path& path) {
  const fs::path file = path / "run.json";
  if (!fs::exists(file)) {
    throw ConfigError(path.string() + " is not a run directory: it has no run.json");
  }
  nlohmann::json document =
      nlohmann::json::parse(storage::read_text_file(file, kRunJsonLimit), nullptr,
                            /*allow_exceptions=*/false);
  if (!document.is_object()) throw ConfigError(file.string() + " is damaged: not a JSON object");
  if (const auto checksum = document.find(kChecksum); checksum != document.end()) {
    const nlohmann::json written = *checksum;
    document.erase(checksum);
    if (written != checksum_of(document)) {
      throw ConfigError(
          file.string() +
          " is damaged: its checksum does not fit. If it was changed on purpose, delete "
          "its member \"sha256\"");
    }
  }
  return document;
}

config::RunConfig read_run_config(const fs::path& path) {
  config::RunConfig config;
  methods::merge_json(config, read_run_json(path).dump(), (path / "run.json").string());
  return config;
}

}  // namespace cohort::engine
