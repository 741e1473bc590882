#include "config/run_config.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text.h"

namespace cohort {
namespace {

using nlohmann::json;

// The shortest text that reads back as the same number.
std::string number_text(double value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return {buffer, end.ptr};
}

template <class T>
T parse_number(const ConfigField& field, std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    throw ConfigError("--" + field.name + " needs " +
                      (std::is_integral_v<T> ? "a whole number" : "a number") + ", got '" +
                      std::string(text) + "'");
  }
  return value;
}

bool parse_bool(const ConfigField& field, std::string_view text) {
  if (text == "true" || text == "1" || text == "yes" || text == "on") return true;
  if (text == "false" || text == "0" || text == "no" || text == "off") return false;
  throw ConfigError("--" + field.name + " needs true or false, got '" + std::string(text) + "'");
}

void check_range(const ConfigField& field, double value) {
  if (std::isfinite(value) && value >= field.low && value <= field.high) return;
  throw ConfigError("--" + field.name + " must be from " + number_text(field.low) + " to " +
                    number_text(field.high) + ", got " + number_text(value));
}

void assign(RunConfig& config, const ConfigField& field, std::string RunConfig::*member,
            std::string value) {
  if (!field.choices.empty() &&
      std::find(field.choices.begin(), field.choices.end(), value) == field.choices.end()) {
    throw ConfigError(unknown_name("value for --" + field.name, value, field.choices));
  }
  config.*member = std::move(value);
}

template <class T>
void assign(RunConfig& config, const ConfigField& field, T RunConfig::*member, T value) {
  check_range(field, static_cast<double>(value));
  config.*member = value;
}

void assign(RunConfig& config, const ConfigField&, bool RunConfig::*member, bool value) {
  config.*member = value;
}

void assign(RunConfig& config, const ConfigField& field, std::vector<double> RunConfig::*member,
            std::vector<double> values) {
  for (const double value : values) check_range(field, value);
  config.*member = std::move(values);
}

template <class T>
T read_json(const ConfigField& field, const json& value, const char* wanted) {
  try {
    if constexpr (std::is_same_v<T, std::int64_t>) {
      if (!value.is_number_integer()) throw json::type_error::create(302, "", nullptr);
    }
    return value.get<T>();
  } catch (const json::exception&) {
    throw ConfigError("'" + field.name + "' needs " + wanted + ", got " + value.dump());
  }
}

void set_from_json(RunConfig& config, const ConfigField& field, const json& value) {
  if (const auto* text = std::get_if<std::string RunConfig::*>(&field.member)) {
    assign(config, field, *text, read_json<std::string>(field, value, "a text"));
  } else if (const auto* count = std::get_if<std::int64_t RunConfig::*>(&field.member)) {
    assign(config, field, *count, read_json<std::int64_t>(field, value, "a whole number"));
  } else if (const auto* number = std::get_if<double RunConfig::*>(&field.member)) {
    assign(config, field, *number, read_json<double>(field, value, "a number"));
  } else if (const auto* flag = std::get_if<bool RunConfig::*>(&field.member)) {
    assign(config, field, *flag, read_json<bool>(field, value, "true or false"));
  } else {
    assign(config, field, std::get<std::vector<double> RunConfig::*>(field.member),
           read_json<std::vector<double>>(field, value, "a list of numbers"));
  }
}

const ConfigField* find_field(const std::string& name) {
  for (const ConfigField& field : config_fields()) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

std::vector<std::string> field_names() {
  std::vector<std::string> names;
  for (const ConfigField& field : config_fields()) names.push_back(field.name);
  return names;
}

}  // namespace

void set_field(RunConfig& config, const ConfigField& field, std::string_view text) {
  if (const auto* word = std::get_if<std::string RunConfig::*>(&field.member)) {
    assign(config, field, *word, std::string(text));
  } else if (const auto* count = std::get_if<std::int64_t RunConfig::*>(&field.member)) {
    assign(config, field, *count, parse_number<std::int64_t>(field, text));
  } else if (const auto* number = std::get_if<double RunConfig::*>(&field.member)) {
    assign(config, field, *number, parse_number<double>(field, text));
  } else if (const auto* flag = std::get_if<bool RunConfig::*>(&field.member)) {
    assign(config, field, *flag, parse_bool(field, text));
  } else {
    std::vector<double> values;
    for (const std::string& part : split(text, ',')) {
      values.push_back(parse_number<double>(field, part));
    }
    assign(config, field, std::get<std::vector<double> RunConfig::*>(field.member), values);
  }
}

std::string field_text(const RunConfig& config, const ConfigField& field) {
  struct Printer {
    const RunConfig& config;
    std::string operator()(std::string RunConfig::*member) const { return config.*member; }
    std::string operator()(std::int64_t RunConfig::*member) const {
      return std::to_string(config.*member);
    }
    std::string operator()(double RunConfig::*member) const { return number_text(config.*member); }
    std::string operator()(bool RunConfig::*member) const {
      return config.*member ? "true" : "false";
    }
    std::string operator()(std::vector<double> RunConfig::*member) const {
      std::vector<std::string> parts;
      for (const double value : config.*member) parts.push_back(number_text(value));
      return join(parts, ",");
    }
  };
  return std::visit(Printer{config}, field.member);
}

json to_json(const RunConfig& config) {
  json object = json::object();
  for (const ConfigField& field : config_fields()) {
    std::visit([&](auto member) { object[field.name] = config.*member; }, field.member);
  }
  return object;
}

void merge_json(RunConfig& config, std::string_view text, const std::string& source) {
  json document = json::parse(text, nullptr, /*allow_exceptions=*/false, /*ignore_comments=*/true);
  if (document.is_discarded()) throw ConfigError(source + " is not valid JSON");
  if (document.is_object() && document.contains("config")) document = json(document["config"]);
  if (!document.is_object()) {
    throw ConfigError(source + " must hold a JSON object of settings, e.g. {\"model\": \"lenet\"}");
  }
  RunConfig merged = config;
  for (const auto& [key, value] : document.items()) {
    const ConfigField* field = find_field(key);
    if (field == nullptr)
      throw ConfigError(source + ": " + unknown_name("setting", key, field_names()));
    try {
      set_from_json(merged, *field, value);
    } catch (const ConfigError& error) {
      throw ConfigError(source + ": " + error.what());
    }
  }
  config = merged;
}

namespace {

void only_with(bool idle, const std::string& flag, const std::string& need) {
  if (idle) throw ConfigError("--" + flag + " does nothing without " + need + ": leave it out");
}

void check_swamp(const RunConfig& config) {
  const RunConfig usual;
  const bool swamp = config.method == "swamp";
  const bool validated = swamp && config.swamp_server == "validated";
  const std::string with_swamp = "--method swamp";
  only_with(!swamp && config.swamp_server != usual.swamp_server, "swamp-server", with_swamp);
  only_with(!swamp && config.free_trial_steps != usual.free_trial_steps, "free-trial-steps",
            with_swamp);
  only_with(!swamp && config.pull_probability != usual.pull_probability, "pull-probability",
            with_swamp);
  only_with(!swamp && config.crossover_probability != 0, "crossover-probability", with_swamp);
  only_with(!validated && config.validation_size != usual.validation_size, "validation-size",
            with_swamp + " --swamp-server validated");
  only_with(!validated && config.swamp_hysteresis != usual.swamp_hysteresis, "swamp-hysteresis",
            with_swamp + " --swamp-server validated");
  only_with((!swamp || validated) && config.check_samples != usual.check_samples, "check-samples",
            with_swamp + " --swamp-server fifo or latest");
  if (!swamp) return;
  if (config.partition != "none" && config.partition != "all") {
    throw ConfigError(
        "--method swamp lets every worker go through all training data: leave out "
        "--partition " +
        config.partition);
  }
  if (config.accumulate > 1) {
    throw ConfigError("--method swamp takes one forward pass a step: leave out --accumulate");
  }
}

}  // namespace

void check_config(const RunConfig& config) {
  // Dialects set members without asking the table.
  RunConfig copy = config;
  for (const ConfigField& field : config_fields())
    set_field(copy, field, field_text(config, field));
  check_swamp(config);
  only_with(config.nesterov && config.optimizer != "sgd", "nesterov", "--optimizer sgd");
  only_with(config.average_every > 1 && config.method != "all-reduce", "average-every",
            "--method all-reduce");
  const bool servers = config.method == "parameter-server";
  const std::string with_servers = "--method parameter-server";
  const bool swamp = config.method == "swamp";
  only_with(!servers && !swamp && config.servers != "1", "servers", with_servers);
  only_with(!servers && config.server_mode != "sync", "server-mode", with_servers);
  only_with(!servers && config.wire != "float32", "wire", with_servers);
  only_with(!servers && !swamp && config.rank >= 0, "rank", with_servers);
  only_with(config.backup_workers > 0 && !(servers && config.server_mode == "sync"),
            "backup-workers", with_servers + " --server-mode sync");
  only_with(config.delay_compensation > 0 && !(servers && config.server_mode != "sync"),
            "delay-compensation", with_servers + " --server-mode async or ssp");
  if (servers && config.clip_norm > 0) {
    throw ConfigError(
        "--clip-norm needs the whole gradient in one place, which no parameter "
        "server has: leave it out, or use --method all-reduce");
  }
  if ((servers || swamp) && config.batch_norm != "rank-0") {
    throw ConfigError("--batch-norm " + config.batch_norm +
                      " needs workers that keep in step, which --method " + config.method +
                      "'s do not: leave it out");
  }
  only_with(config.base_batch > 0 && config.lr_scaling == "none", "base-batch", "--lr-scaling");
  only_with(config.warmup_from > 0 && config.warmup_epochs == 0, "warmup-from", "--warmup-epochs");
  only_with(!config.lr_milestones.empty() && config.schedule != "multi-step" &&
                config.schedule != "piecewise",
            "lr-milestones", "--schedule multi-step or piecewise");
  only_with(!config.lr_values.empty() && config.schedule != "piecewise", "lr-values",
            "--schedule piecewise");
  only_with(config.depth > 0 && config.model != "wideresnet" && config.model != "densenet", "depth",
            "--model wideresnet or densenet");
  only_with(config.widen > 0 && config.model != "wideresnet", "widen", "--model wideresnet");
  only_with(config.growth > 0 && config.model != "densenet", "growth", "--model densenet");
  if (config.lr_scaling != "none" && config.base_batch == 0) {
    throw ConfigError("--lr-scaling needs --base-batch: the batch that --lr was tuned for");
  }
}

}  // namespace cohort
