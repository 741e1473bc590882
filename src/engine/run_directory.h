// The folder of one run: the only contract between the engine and everything that looks at runs
// afterwards. docs/run_directory.md describes every file and field.
//
// One process at a time writes a run; a lock file says so to the next.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "config/run_config.h"
#include "metrics/metrics_sink.h"
#include "storage/append_file.h"

namespace cohort {

class RunDirectory {
 public:
  // Makes `parent`/`name`; an empty name takes `stem`-001 or the next free number. Throws
  // ConfigError when a run of that name is there already.
  static RunDirectory create(const std::filesystem::path& parent, const std::string& name,
                             const std::string& stem);

  // Opens a run that exists, to go on with it. Throws ConfigError when it is none, or when another
  // process has it open.
  static RunDirectory open(const std::filesystem::path& path);

  RunDirectory(RunDirectory&&) noexcept;
  ~RunDirectory();

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }

  void write_run_json(const nlohmann::json& content);
  void write_summary(const nlohmann::json& content);

  // metrics.jsonl. Lives as long as this object.
  MetricsSink& metrics();
  std::uint64_t metrics_bytes() const { return log_->size(); }
  // Forgets the records after the first `bytes`, which a run resumed from a checkpoint repeats.
  void rewind_metrics(std::uint64_t bytes);
  // Drops a last line without an end, which a killed process may have left.
  void mend_metrics();

 private:
  explicit RunDirectory(std::filesystem::path path);
  void lock();

  std::filesystem::path path_;
  int lock_ = -1;
  std::unique_ptr<AppendFile> log_;
  std::unique_ptr<MetricsSink> metrics_;
};

// The run.json of the run at `path`. Throws ConfigError when there is none or it is damaged.
nlohmann::json read_run_json(const std::filesystem::path& path);

// The configuration of the run at `path`. Throws ConfigError when there is none.
RunConfig read_run_config(const std::filesystem::path& path);

}  // namespace cohort
