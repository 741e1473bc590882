#include "dialects/native_command.h"

#include <cctype>

#include "core/text.h"
#include "methods/settings.h"

namespace cohort::dialects {
namespace {

bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("_@%+=:,./-").find(c) != std::string_view::npos;
}

std::string shell_quoted(const std::string& word) {
  bool plain = !word.empty();
  for (const char c : word) plain = plain && is_plain(c);
  if (plain) return word;
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

}  // namespace

std::vector<std::string> native_command(const config::RunConfig& config,
                                        const std::vector<std::string>& extra) {
  const config::RunConfig defaults;
  std::vector<std::string> words = {"cohort", "train"};
  for (const config::ConfigField& field : methods::config_fields()) {
    const std::string text = config::field_text(config, field);
    if (text == config::field_text(defaults, field)) continue;
    const config::SettingValue value = config::value_of(config, field);
    if (const auto* on = std::get_if<bool>(&value)) {
      words.push_back((*on ? "--" : "--no-") + field.name);
      continue;
    }
    words.push_back("--" + field.name);
    words.push_back(text);
  }
  words.insert(words.end(), extra.begin(), extra.end());
  return words;
}

std::string shell_line(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  quoted.reserve(words.size());
  for (const std::string& word : words) quoted.push_back(shell_quoted(word));
  return join(quoted, " ");
}

}  // namespace cohort::dialects
