// Everything that decides the outcome of a run.
//
// One flat struct and tables that name each field: the flag, the key in a configuration file, the
// help text and the permitted values all come from there. The settings of every run are listed in
// fields.cpp, those of a method, a compressor or a topology where it is registered
// (methods/settings.h has all of them in one table). Names that registries know (models, data sets,
// methods, ...) are checked where the registries are, not here.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace cohort::config {

using SettingValue = std::variant<std::string, std::int64_t, double, bool, std::vector<double>>;
using SettingValues = std::map<std::string, SettingValue>;  // by the name of the setting

struct RunConfig {
  // What to train
  std::string model = "mnistnet";
  std::string data = "fashion-mnist";
  std::string method = "local";
  std::int64_t seed = 1;
  std::string device = "cpu";
  std::int64_t threads = 0;
  std::string precision = "fp32";
  bool graph = true;
  std::string memory_format = "auto";
  std::string init;

  // Workers
  std::int64_t workers = 0;
  std::string engine = "auto";
  std::string world;
  std::string bucket = "25";
  double first_bucket = 1;
  std::string batch_norm = "rank-0";
  double peer_timeout = 600;

  // Parameter servers
  std::string servers = "1";
  std::string server_mode = "sync";
  std::int64_t staleness = 3;
  std::int64_t backup_workers = 0;
  double delay_compensation = 0;
  std::string sharding = "sliced";
  std::string wire = "float32";
  std::int64_t replay_window = 256;
  std::int64_t rank = -1;

  // Gossip and compression
  std::string topology = "ring";
  std::int64_t topology_degree = 0;
  std::string topology_file;
  std::string compressor = "none";
  double compress_ratio = 0.99;
  std::int64_t quantize_bits = 8;
  bool biased = false;
  std::string consensus_stepsize = "auto";
  std::string estimates_start = "model";
  bool overlap = true;

  // The network
  std::string job;
  std::string meet;
  std::string token_file;
  std::string tls_dir;
  bool insecure = false;

  // The model's own settings
  double dropout = -1;
  std::int64_t depth = 0;
  std::int64_t widen = 0;
  std::int64_t growth = 0;
  std::int64_t rnn_hidden = 650;
  std::int64_t rnn_layers = 3;
  bool tie_weights = true;

  // Data
  std::string data_dir;
  std::int64_t batch = 64;
  std::int64_t train_skip = 0;
  std::int64_t train_size = 0;
  std::int64_t test_size = 0;
  std::int64_t image_size = 0;
  std::string augment = "auto";
  bool fast_decode = false;
  std::string normalize = "auto";
  bool shuffle = true;
  bool drop_last = false;
  std::int64_t loader_threads = 1;
  std::string partition = "none";
  double partition_alpha = 0.5;
  bool reshuffle = false;
  std::string synthetic_shape = "3x32x32";
  std::int64_t synthetic_classes = 10;
  std::int64_t bptt = 35;
  bool lowercase = false;

  // Optimizer
  std::string optimizer = "sgd";
  double lr = 0.05;
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0;
  bool no_norm_decay = false;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double label_smoothing = 0;
  double clip_norm = 0;
  std::int64_t accumulate = 1;

  // Learning rate over time
  std::string schedule = "constant";
  double lr_step_size = 30;
  double lr_gamma = 0.1;
  std::vector<double> lr_milestones;
  std::vector<double> lr_values;
  std::vector<double> lr_shapes;
  double lr_mu = 1;
  double lr_alpha = 1;
  double lr_min = 0;
  double lr_power = 2;
  double lr_start_factor = 25;
  double lr_end_factor = 1e4;
  double lr_peak_at = 0.3;
  double warmup_epochs = 0;
  double warmup_from = 0;
  std::string lr_scaling = "none";
  std::string lr_scale_by = "world";
  std::int64_t base_batch = 0;

  // When to stop
  std::int64_t epochs = 5;
  std::int64_t start_epoch = 0;
  std::int64_t iterations = 0;
  double target_accuracy = 0;

  // Evaluation, records and checkpoints
  std::int64_t eval_every = 1;
  std::int64_t eval_batch = 500;
  std::string eval_split = "test";
  bool eval_workers = false;
  std::int64_t record_every = 50;
  std::int64_t checkpoint_every = 0;
  std::int64_t keep = 2;
  std::int64_t dump_every = 0;
  std::int64_t keep_dumps = 200;
  bool dump_drop = false;

  // Settings that a method keeps to itself (own_settings.h), where they differ from the default.
  SettingValues own;

  friend bool operator==(const RunConfig&, const RunConfig&) = default;
};

// A row of a table of settings.
struct ConfigField {
  // A setting without a member of its own: its value is in RunConfig::own.
  struct Own {
    SettingValue usual;
  };
  using Member =
      std::variant<std::string RunConfig::*, std::int64_t RunConfig::*, double RunConfig::*,
                   bool RunConfig::*, std::vector<double> RunConfig::*, Own>;

  std::string name;   // "weight-decay": the flag without its dashes, and the key in a file
  std::string group;  // heading in --help
  Member member;
  std::string help;
  double low = -1e308;  // numbers: the permitted range, both ends included
  double high = 1e308;
  std::vector<std::string> choices = {};  // strings: all permitted values; empty: any
  std::string off = {};                   // the value that is harmless where the setting has no use
};

// The settings that every run has, whatever its method.
const std::vector<ConfigField>& common_fields();

SettingValue value_of(const RunConfig& config, const ConfigField& field);
SettingValue default_of(const ConfigField& field);

// Throws ConfigError when the value is not permitted. It has the type of the default.
void set_value(RunConfig& config, const ConfigField& field, SettingValue value);

// The same from what was written after its flag. Throws ConfigError.
void set_field(RunConfig& config, const ConfigField& field, std::string_view text);

// The field's value as it would be written after its flag.
std::string field_text(const RunConfig& config, const ConfigField& field);

nlohmann::json to_json(const RunConfig& config, const std::vector<ConfigField>& fields);

// Overwrites those of `fields` that `text` names. `text` is a JSON object of settings, or a
// run.json, whose "config" member is taken. `source` names the text in messages. Throws ConfigError
// on malformed text, unknown keys (suggesting the nearest) and values out of range; then `config`
// is unchanged. Returns the names of the fields.
std::vector<std::string> merge_json(RunConfig& config, std::string_view text,
                                    const std::string& source,
                                    const std::vector<ConfigField>& fields);

// Throws ConfigError where `idle`: a setting that nothing would use. `need`: what would.
void refuse_idle(bool idle, const std::string& flag, const std::string& need);

// Combinations of common settings that make no sense. Throws ConfigError.
void check_common(const RunConfig& config);

}  // namespace cohort::config
