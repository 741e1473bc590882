#include "config/run_config.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "config/other_words.h"
#include "core/error.h"
#include "core/text.h"

namespace cohort::config {
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

void check_value(const ConfigField& field, const SettingValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    if (!field.choices.empty() &&
        std::find(field.choices.begin(), field.choices.end(), *text) == field.choices.end()) {
      throw ConfigError(unknown_name("value for --" + field.name, *text, field.choices));
    }
  } else if (const auto* count = std::get_if<std::int64_t>(&value)) {
    check_range(field, static_cast<double>(*count));
  } else if (const auto* number = std::get_if<double>(&value)) {
    check_range(field, *number);
  } else if (const auto* numbers = std::get_if<std::vector<double>>(&value)) {
    for (const double each : *numbers) check_range(field, each);
  }
}

template <class T>
constexpr const char* kWanted = "a list of numbers";
template <>
constexpr const char* kWanted<std::string> = "a text";
template <>
constexpr const char* kWanted<std::int64_t> = "a whole number";
template <>
constexpr const char* kWanted<double> = "a number";
template <>
constexpr const char* kWanted<bool> = "true or false";

// The value in `json`, of the type that the field's default has.
SettingValue read_json(const ConfigField& field, const json& value) {
  return std::visit(
      [&](const auto& usual) -> SettingValue {
        using T = std::decay_t<decltype(usual)>;
        try {
          if constexpr (std::is_same_v<T, std::int64_t>) {
            if (!value.is_number_integer()) throw json::type_error::create(302, "", nullptr);
          }
          return value.get<T>();
        } catch (const json::exception&) {
          throw ConfigError("'" + field.name + "' needs " + kWanted<T> + ", got " + value.dump());
        }
      },
      default_of(field));
}

const ConfigField* find_field(const std::string& name, const std::vector<ConfigField>& fields) {
  for (const ConfigField& field : fields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

std::string unknown_setting(const std::string& key, const std::vector<ConfigField>& fields) {
  std::vector<std::string> names;
  for (const ConfigField& field : fields) names.push_back(field.name);
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

SettingValue value_of(const RunConfig& config, const ConfigField& field) {
  return std::visit(
      [&](const auto& member) -> SettingValue {
        if constexpr (std::is_same_v<std::decay_t<decltype(member)>, ConfigField::Own>) {
          const auto found = config.own.find(field.name);
          return found == config.own.end() ? member.usual : found->second;
        } else {
          return config.*member;
        }
      },
      field.member);
}

SettingValue default_of(const ConfigField& field) { return value_of(RunConfig{}, field); }

void set_value(RunConfig& config, const ConfigField& field, SettingValue value) {
  check_value(field, value);
  std::visit(
      [&](const auto& member) {
        if constexpr (std::is_same_v<std::decay_t<decltype(member)>, ConfigField::Own>) {
          COHORT_CHECK(value.index() == member.usual.index(), "a setting keeps its type");
          if (value == member.usual) {
            config.own.erase(field.name);
          } else {
            config.own[field.name] = std::move(value);
          }
        } else {
          using T = std::decay_t<decltype(config.*member)>;
          config.*member = std::get<T>(std::move(value));
        }
      },
      field.member);
}

void set_field(RunConfig& config, const ConfigField& field, std::string_view text) {
  SettingValue value = default_of(field);
  if (auto* word = std::get_if<std::string>(&value)) {
    *word = text;
  } else if (auto* count = std::get_if<std::int64_t>(&value)) {
    *count = parse_number<std::int64_t>(field, text);
  } else if (auto* number = std::get_if<double>(&value)) {
    *number = parse_number<double>(field, text);
  } else if (auto* flag = std::get_if<bool>(&value)) {
    *flag = parse_bool(field, text);
  } else {
    auto& numbers = std::get<std::vector<double>>(value);
    numbers.clear();
    for (const std::string& part : split(text, ',')) {
      numbers.push_back(parse_number<double>(field, part));
    }
  }
  set_value(config, field, std::move(value));
}

std::string field_text(const RunConfig& config, const ConfigField& field) {
  struct Printer {
    std::string operator()(const std::string& text) const { return text; }
    std::string operator()(std::int64_t count) const { return std::to_string(count); }
    std::string operator()(double number) const { return number_text(number); }
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    std::string operator()(const std::vector<double>& numbers) const {
      std::vector<std::string> parts;
      for (const double each : numbers) parts.push_back(number_text(each));
      return join(parts, ",");
    }
  };
  return std::visit(Printer{}, value_of(config, field));
}

json to_json(const RunConfig& config, const std::vector<ConfigField>& fields) {
  json object = json::object();
  for (const ConfigField& field : fields) {
    std::visit([&](const auto& value) { object[field.name] = value; }, value_of(config, field));
  }
  return object;
}

std::vector<std::string> merge_json(RunConfig& config, std::string_view text,
                                    const std::string& source,
                                    const std::vector<ConfigField>& fields) {
  json document = parse_settings(text, source);
  if (document.is_object() && document.contains("config")) document = json(document["config"]);
  if (!document.is_object()) {
    throw ConfigError(source + " must hold a JSON object of settings, e.g. {\"model\": \"lenet\"}");
  }
  RunConfig merged = config;
  std::vector<std::string> names;
  for (const auto& [key, value] : document.items()) {
    const ConfigField* field = find_field(key, fields);
    if (field == nullptr) throw ConfigError(source + ": " + unknown_setting(key, fields));
    try {
      set_value(merged, *field, read_json(*field, value));
      names.push_back(key);
    } catch (const ConfigError& error) {
      throw ConfigError(source + ": " + error.what());
    }
  }
  config = merged;
  return names;
}

}  // namespace cohort::config
