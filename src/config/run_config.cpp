#include "config/run_config.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "config/other_words.h"
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

std::string unknown_setting(const std::string& key) {
  std::vector<std::string> names;
  for (const ConfigField& field : config_fields()) names.push_back(field.name);
  const std::string unknown = "unknown setting '" + key + "'";
  if (const std::string ours = same_meaning(key, names); !ours.empty()) {
    return unknown + ": here it is '" + ours + "'";
  }
  const std::string advice = advice_instead_of(key);
  return advice.empty() ? unknown_name("setting", key, names) : unknown + ": " + advice;
}

// Throws ConfigError with the line and column of what is no JSON.
json parse_settings(std::string_view text, const std::string& source) {
  try {
    return json::parse(text, nullptr, /*allow_exceptions=*/true, /*ignore_comments=*/true);
  } catch (const json::exception& error) {
    // It begins with a number that only its authors know.
    const std::string what = error.what();
    const std::size_t place = what.find("line ");
    throw ConfigError(source + " is not valid JSON" +
                      (place == what.npos ? "" : ", " + what.substr(place)));
  }
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

std::vector<std::string> merge_json(RunConfig& config, std::string_view text,
                                    const std::string& source) {
  json document = parse_settings(text, source);
  if (document.is_object() && document.contains("config")) document = json(document["config"]);
  if (!document.is_object()) {
    throw ConfigError(source + " must hold a JSON object of settings, e.g. {\"model\": \"lenet\"}");
  }
  RunConfig merged = config;
  std::vector<std::string> names;
  for (const auto& [key, value] : document.items()) {
    const ConfigField* field = find_field(key);
    if (field == nullptr) throw ConfigError(source + ": " + unknown_setting(key));
    try {
      set_from_json(merged, *field, value);
      names.push_back(key);
    } catch (const ConfigError& error) {
      throw ConfigError(source + ": " + error.what());
    }
  }
  config = merged;
  return names;
}

}  // namespace cohort
