#include "dialects/swamp.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>

#include "core/error.h"
#include "core/text.h"
#include "methods/settings.h"

namespace cohort::dialects {
namespace {

std::string short_number(double value) {
  if (value == 0) return "0";  // -0 too
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, end.ptr};
}

// The experiment's name of a thing and ours.
const std::string& ours(const std::map<std::string, std::string>& names, const std::string& kind,
                        const std::string& theirs) {
  const auto found = names.find(lower(theirs));
  if (found != names.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [name, own] : names) known.push_back(name);
  throw ConfigError(unknown_name(kind, theirs, known));
}

std::string data_of(const SwampFlags& flags) {
  static const std::map<std::string, std::string> names = {
      {"mnist", "mnist"}, {"cifar10", "cifar-10"}, {"imagenet", "image-folder"}};
  return ours(names, "--data-type", flags.data_type);
}

std::string model_of(const SwampFlags& flags, const std::string& data) {
  static const std::map<std::string, std::string> names = {
      {"mnistnet", "mnistnet"}, {"cifar10net", "cifar10net"}, {"resnet18", "resnet18"}};
  if (flags.model_name.empty()) {
    return data == "mnist" ? "mnistnet" : data == "cifar-10" ? "cifar10net" : "resnet18";
  }
  const std::string model = ours(names, "--model-name", flags.model_name);
  return model == "resnet18" && data == "cifar-10" ? "resnet18-cifar" : model;
}

void check_probability(const char* flag, double value) {
  if (value >= 0 && value <= 1) return;
  throw ConfigError(std::string(flag) + " is a probability, from 0 to 1; got " +
                    short_number(value));
}

void check_at_least_one(const char* flag, std::int64_t value) {
  if (value >= 1) return;
  throw ConfigError(std::string(flag) + " must be at least 1, got " + std::to_string(value));
}

}  // namespace

config::RunConfig translate(const SwampFlags& flags) {
  check_probability("--pull-probability", flags.pull_probability);
  check_probability("--crossover-probability", flags.crossover_probability);
  check_at_least_one("--trainer-number", flags.trainer_number);
  check_at_least_one("--batch-size", flags.batch_size);
  check_at_least_one("--epochs", flags.epochs);
  check_at_least_one("--free-trial-steps", flags.free_trial_steps);
  check_at_least_one("--loss-sample-interval", flags.loss_sample_interval);
  check_at_least_one("--validate_batch_size", flags.validate_batch_size);
  check_at_least_one("--validate_max_batch", flags.validate_max_batch);
  config::RunConfig config;
  config.method = "swamp";
  config.data = data_of(flags);
  config.model = model_of(flags, config.data);
  config.workers = flags.trainer_number;
  config.engine = "threads";
  config.batch = flags.batch_size;
  config.epochs = flags.epochs;
  config.lr = flags.lr;
  config.momentum = flags.momentum;
  config.seed = flags.seed;
  config.threads = flags.threads;
  config.data_dir = flags.training_data_dir;
  config.device = flags.use_gpu ? "cuda" : "cpu";
  if (config.data != "mnist") {
    // What the experiment's later versions had for these.
    config.weight_decay = 5e-4;
    config.schedule = "multi-step";
    config.lr_milestones = {10, 20, 30};
  }
  methods::set_setting(config, "free-trial-steps", flags.free_trial_steps);
  methods::set_setting(config, "pull-probability", flags.pull_probability);
  methods::set_setting(config, "crossover-probability", flags.crossover_probability);
  const std::string server = flags.swamp_server.empty() ? "validated" : flags.swamp_server;
  methods::set_setting(config, "swamp-server", server);
  if (server == "validated") {
    methods::set_setting(config, "validation-size", flags.validation_size);
  } else {
    std::int64_t samples = 0;
    if (__builtin_mul_overflow(flags.validate_batch_size, flags.validate_max_batch, &samples)) {
      throw ConfigError("--validate_batch_size times --validate_max_batch is too large");
    }
    methods::set_setting(config, "check-samples", samples);
  }
  config.dump_every = flags.loss_sample_interval;
  config.keep_dumps = flags.keep_dumps;
  config.record_every = std::max<std::int64_t>(1, flags.loss_sample_interval);
  return config;
}

std::string swamp_job_name(const SwampFlags& flags) {
  if (!flags.job_name.empty()) return flags.job_name;
  std::string name = kSwampJobPrefix + ("t" + std::to_string(flags.trainer_number)) + "_pp" +
                     short_number(flags.pull_probability);
  if (!flags.swamp_server.empty()) name += "_" + flags.swamp_server;
  if (flags.seed != SwampFlags{}.seed) name += "_seed" + std::to_string(flags.seed);
  return name;
}

std::string swamp_meta(const SwampFlags& flags) {
  return std::to_string(flags.trainer_number) + "_" + short_number(flags.pull_probability);
}

SwampMeta parse_swamp_meta(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  SwampMeta meta;
  const char* end = text.data() + text.size();
  const auto trainers = std::from_chars(text.data(), end, meta.trainers);
  if (trainers.ec == std::errc{} && trainers.ptr != end && *trainers.ptr == '_') {
    const auto probability = std::from_chars(trainers.ptr + 1, end, meta.pull_probability);
    if (probability.ec == std::errc{} && probability.ptr == end) return meta;
  }
  throw ConfigError("meta.info must hold TRAINERS_PROBABILITY, e.g. 2_0.5; it holds '" +
                    std::string(text.substr(0, 40)) + "'");
}

std::string swamp_loss_file(const std::string& pattern, const SwampMeta& meta) {
  std::string name = pattern;
  for (const std::string& value :
       {std::to_string(meta.trainers), short_number(meta.pull_probability)}) {
    const std::size_t place = name.find("{}");
    if (place != std::string::npos) name.replace(place, 2, value);
  }
  return name;
}

bool parse_swamp_bool(const std::string& flag, const std::string& text) {
  const std::string word = lower(text);
  if (word == "true" || word == "1") return true;
  if (word == "false" || word == "0") return false;
  throw ConfigError(flag + " takes true or false, got '" + text + "'");
}

}  // namespace cohort::dialects
