// The settings of a run as flags.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "config/run_config.h"

namespace cohort::apps {

// Adds a flag for each setting in `only` (all when empty), and --config, to a command. A switch
// that is on by itself has two: --overlap, also with a value (--overlap false), and --no-overlap.
// Of flags for the same setting the last one counts. Must outlive the parsing.
class ConfigFlags {
 public:
  // `defaults` is what --help shows: the base that resolve() will be given.
  explicit ConfigFlags(CLI::App& command, std::vector<std::string> only = {},
                       const config::RunConfig& defaults = {});

  // `base`, then the file given by --config, then the flags. Throws ConfigError.
  config::RunConfig resolve(config::RunConfig base = {}) const;

  // The settings given as flags, for commands that allow only some.
  std::vector<std::string> given() const;
  // And those in the file given by --config. Throws ConfigError.
  std::set<std::string> given_anywhere() const;
  bool config_file_given() const { return !config_file_.empty(); }

 private:
  void add(const config::ConfigField& field, const config::RunConfig& defaults);
  void add_opposite(const config::ConfigField& field, CLI::Option& option);
  bool is_given(const std::string& name) const;
  std::vector<std::string> merge_file(
      config::RunConfig& config) const;  // the names of what it sets
  // What was written for a setting that is given.
  std::string text_of(const config::ConfigField& field) const;

  CLI::App& command_;
  std::map<std::string, std::string> texts_;  // by setting, what was written after its flag
  std::map<std::string, CLI::Option*> options_;
  std::map<std::string, CLI::Option*> opposites_;  // by setting, its --no-
  std::string config_file_;
};

}  // namespace cohort::apps
