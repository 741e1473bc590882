// The command line of the Swamp experiment (ElasticDL, 2018: train.py, eval.py, plot.py,
// pdf_creator.py, batch_run.py) in our terms.
//
// Pure functions from its flags to a configuration and to names of files: docs/swamp.md has the
// table. Nothing here reads files or the environment.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.h"
#include "methods/swamp_method.h"

namespace cohort::dialects {

// With the defaults of train.py.
struct SwampFlags {
  std::int64_t batch_size = 64;
  std::int64_t epochs = 1;
  double lr = 0.01;
  double momentum = 0.5;
  std::int64_t seed = 1;
  std::int64_t free_trial_steps = 10;
  std::int64_t validate_batch_size = 64;
  std::int64_t validate_max_batch = 5;
  std::int64_t loss_sample_interval = 1;
  std::int64_t log_interval = 50;
  double pull_probability = 0;
  double crossover_probability = 0;
  std::int64_t trainer_number = 1;
  std::string job_name;  // empty: swamp_job_name()
  std::string data_type = "mnist";
  std::string model_name;  // empty: the data's usual one
  bool use_gpu = false;
  std::string training_data_dir;
  // Ours.
  std::string swamp_server;  // empty: validated
  std::int64_t validation_size = methods::SwampSettings{}.validation_size;
  std::int64_t keep_dumps = config::RunConfig{}.keep_dumps;
  std::int64_t threads = 0;
};

// Throws ConfigError in terms of the experiment's flags.
config::RunConfig translate(const SwampFlags& flags);

// swamp_t{T}_pp{P}; with _SERVER and _seedN after it where those were asked for, so that runs that
// differ in them do not replace each other.
std::string swamp_job_name(const SwampFlags& flags);

// What meta.info holds: {T}_{P}.
std::string swamp_meta(const SwampFlags& flags);

struct SwampMeta {
  std::int64_t trainers = 0;
  double pull_probability = 0;
};
// Throws ConfigError when the text is none.
SwampMeta parse_swamp_meta(std::string_view text);

// `pattern` with its two {} replaced by the number of trainers and the pull probability.
std::string swamp_loss_file(const std::string& pattern, const SwampMeta& meta);

inline constexpr const char* kSwampLossFile = "swamp_metrics_t_{}_pp_{}.png";
inline constexpr const char* kSwampJobPrefix = "swamp_";

// true, True, 1, false, False, 0: what the experiment takes for a bool. Throws ConfigError naming
// the flag.
bool parse_swamp_bool(const std::string& flag, const std::string& text);

}  // namespace cohort::dialects
