#include "engine/run_directory.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/file.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "metrics/json_lines_sink.h"
#include "storage/file.h"

namespace cohort {
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

// True when this call made the folder.
bool make_folder(const fs::path& path) {
  std::error_code error;
  const bool made = fs::create_directory(path, error);
  if (error) throw_file_error(error.value(), "creating the run directory", path);
  return made;
}

}  // namespace

RunDirectory::RunDirectory(fs::path path) : path_(std::move(path)) {}

RunDirectory::RunDirectory(RunDirectory&& other) noexcept
    : path_(std::move(other.path_)),
      lock_(std::exchange(other.lock_, -1)),
      log_(std::move(other.log_)),
      metrics_(std::move(other.metrics_)) {}

RunDirectory::~RunDirectory() {
  metrics_.reset();
  log_.reset();
  if (lock_ >= 0) ::close(lock_);
}

RunDirectory RunDirectory::create(const fs::path& parent, const std::string& name,
                                  const std::string& stem) {
  require_simple_name(name);
  std::error_code error;
  fs::create_directories(parent, error);
  if (error) throw_file_error(error.value(), "creating the folder for runs", parent);
  fs::path path;
  if (!name.empty()) {
    path = parent / name;
    if (!make_folder(path)) {
      throw ConfigError(path.string() +
                        " exists already: choose another --name, or go on with it "
                        "by --resume " +
                        path.string());
    }
  } else {
    for (int number = 1; number <= kMaxNumber; ++number) {
      path = parent / fmt::format("{}-{:03}", stem, number);
      if (make_folder(path)) break;
      if (number == kMaxNumber) throw ConfigError(parent.string() + " is full: give a --name");
    }
  }
  RunDirectory run(path);
  run.lock();
  return run;
}

RunDirectory RunDirectory::open(const fs::path& path) {
  if (!fs::exists(path / "run.json")) {
    throw ConfigError(path.string() + " is not a run directory: it has no run.json");
  }
  RunDirectory run(path);
  run.lock();
  return run;
}

void RunDirectory::lock() {
  const fs::path file = path_ / ".lock";
  lock_ = ::open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  if (lock_ < 0) throw_file_error(errno, "opening", file);
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    throw ConfigError(path_.string() + " is in use by another process");
  }
}

void RunDirectory::write_run_json(const nlohmann::json& content) {
  write_file_atomically(path_ / "run.json", content.dump(2) + "\n");
}

void RunDirectory::write_summary(const nlohmann::json& content) {
  write_file_atomically(path_ / "summary.json", content.dump(2) + "\n");
}

MetricsSink& RunDirectory::metrics() {
  if (metrics_ == nullptr) {
    log_ = std::make_unique<AppendFile>(path_ / "metrics.jsonl");
    metrics_ = std::make_unique<JsonLinesSink>(
        [log = log_.get()](std::string_view line) {
          log->append_line(line.substr(0, line.size() - 1));  // it brings its own line feed
          log->flush();
        },
        [log = log_.get()] { log->sync(); });
  }
  return *metrics_;
}

void RunDirectory::rewind_metrics(std::uint64_t bytes) {
  metrics();
  if (log_->size() > bytes) log_->truncate(bytes);
}

void RunDirectory::mend_metrics() {
  metrics();
  std::ifstream log(path_ / "metrics.jsonl", std::ios::binary);
  std::uint64_t whole = log_->size();
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
  nlohmann::json document = nlohmann::json::parse(read_text_file(file, kRunJsonLimit), nullptr,
                                                  /*allow_exceptions=*/false);
  if (!document.is_object()) throw ConfigError(file.string() + " is damaged: not a JSON object");
  return document;
}

RunConfig read_run_config(const fs::path& path) {
  RunConfig config;
  merge_json(config, read_run_json(path).dump(), (path / "run.json").string());
  return config;
}

}  // namespace cohort
