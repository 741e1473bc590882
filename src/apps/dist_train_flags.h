// The flags of `cohort dist_train`, all three programs' together.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <optional>
#include <string>

#include "dialects/dist_train.h"

namespace cohort::apps {

class DistTrainCommand {
 public:
  // Adds the flags to `app`, which outlives this object; they are parsed into it.
  explicit DistTrainCommand(CLI::App& app);

  // What was parsed. Throws ConfigError for truth values that are none, and for two names of one
  // thing that contradict each other.
  dialects::DistTrainFlags finished_flags() const;

  // Where run directories are made: --runs-dir, or in 2019's way --model_save_dir.
  std::string runs_dir_for(dialects::PaddleRevision revision) const;

  dialects::DistTrainFlags flags;
  std::string name;
  std::string state_dir;
  double idle_exit = 600;
  bool explain = false;

  const CLI::App& app() const { return command_; }

 private:
  void add_network_and_data();
  void add_duration();
  void add_devices();
  void add_distribution();
  void add_without_effect();
  void add_ours();
  // A switch in one program, and a flag with a truth value in another.
  void add_truth(const char* flag, const char* help);

  CLI::App& command_;
  std::map<std::string, std::string> truths_;
  std::optional<std::string> runs_dir_;
  struct {
    std::optional<double> lr;
    std::optional<std::int64_t> num_epochs;
    std::optional<std::int64_t> num_threads;
  } later_;  // 2019's names of what has another one
};

}  // namespace cohort::apps
