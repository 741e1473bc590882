// The folder of one run: the only contract between the engine and everything that looks at runs
// afterwards. docs/run_directory.md describes every file and field.
//
// One process at a time writes a run; a lock file says so to the next.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "config/run_config.h"
#include "metrics/metrics_sink.h"
#include "storage/append_file.h"

namespace cohort::engine {

class RunDirectory {
 public:
  // Makes `parent`/`name`; an empty name takes numbered(stem, 1) or the next free number. The
  // folder appears with its run.json in it; one of that name with nothing in it is taken over.
  // Throws ConfigError when there is something of that name already.
  static RunDirectory create(const std::filesystem::path& parent, const std::string& name,
                             const std::string& stem, const nlohmann::json& run_json);
  static std::string numbered(const std::string& stem, int number);  // `stem`-001

  // Opens a run that exists, to go on with it. Throws ConfigError when it is none, or when another
  // process has it open.
  static RunDirectory open(const std::filesystem::path& path);

  RunDirectory(RunDirectory&&) noexcept;
  ~RunDirectory();

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }

  void write_run_json(const nlohmann::json& content);
  // Where somebody has removed or moved the folder meanwhile: makes it again with its run.json and
  // metrics.jsonl, and returns a warning for the user; else nothing.
  std::optional<std::string> remake_if_gone();
  void write_summary(const nlohmann::json& content);

  // Removes the folder when there is nothing in it but what create() wrote and empty files: of a
  // run that could not begin. Not to be used afterwards.
  void discard_if_unused() noexcept;

  // metrics.jsonl. Lives as long as this object. Workers may record while another one asks how long
  // it is, or rewinds it.
  metrics::MetricsSink& metrics();
  std::uint64_t metrics_bytes() const;
  // Forgets the records after the first `bytes`, which a run resumed from a checkpoint repeats.
  void rewind_metrics(std::uint64_t bytes);
  // Drops a last line without an end, which a killed process may have left.
  void repair_metrics();

 private:
  explicit RunDirectory(std::filesystem::path path);
  void lock();
  void take_name(const std::filesystem::path& parent, const std::string& name,
                 const std::string& stem);

  std::filesystem::path path_;
  std::string run_json_;  // as it was written last
  int lock_ = -1;
  struct Log;
  std::unique_ptr<Log> log_;
  std::unique_ptr<metrics::MetricsSink> metrics_;
};

// The run.json of the run at `path`, without its checksum. Throws ConfigError when there is none or
// it is damaged. One written before there were checksums has none.
nlohmann::json read_run_json(const std::filesystem::path& path);

// The configuration of the run at `path`. Throws ConfigError when there is none.
config::RunConfig read_run_config(const std::filesystem::path& path);

}  // namespace cohort::engine
