#include "dialects/flag_names.h"

#include <algorithm>
#include <cctype>

#include "config/other_words.h"
#include "config/run_config.h"
#include "methods/settings.h"

namespace cohort::dialects {
namespace {

bool is_in_a_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-'; }

bool is_setting(const std::string& name) {
  const auto& fields = methods::config_fields();
  return std::any_of(fields.begin(), fields.end(),
                     [&](const config::ConfigField& field) { return field.name == name; });
}

// Where a sentence goes on with a flag as if with a noun that has an adjective: "a lower --lr".
bool ends_with_adjective(const std::string& text) {
  for (const char* words : {"a lower ", "a larger ", "a higher ", "a smaller "}) {
    if (text.ends_with(words)) return true;
  }
  return false;
}

std::string word_for(const FlagNames& names, const std::string& name, const std::string& before) {
  const auto found = names.find(name);
  if (found != names.end()) return found->second;
  if (!is_setting(name)) return "--" + name;
  return ends_with_adjective(before) ? name + " (a setting of cohort train)"
                                     : "the setting " + name;
}

std::size_t end_of_name(const std::string& text, std::size_t begin) {
  std::size_t end = begin;
  while (end < text.size() && is_in_a_name(text[end])) ++end;
  return end;
}

}  // namespace

std::string in_words_of(const FlagNames& names, const std::string& text) {
  if (names.empty()) return text;
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const bool inside = at > 0 && (is_in_a_name(text[at - 1]) || text[at - 1] == '_');
    if (inside || text.compare(at, 2, "--") != 0) {
      result += text[at++];
      continue;
    }
    const std::size_t end = end_of_name(text, at + 2);
    const std::size_t end_of_value =
        end < text.size() && text[end] == ' ' ? end_of_name(text, end + 1) : end;
    const auto with_value = names.find(text.substr(at + 2, end_of_value - at - 2));
    if (end_of_value > end && with_value != names.end()) {
      result += with_value->second;
      at = end_of_value;
      continue;
    }
    result += word_for(names, text.substr(at + 2, end - at - 2), result);
    at = end;
  }
  return result;
}

FlagNames flag_names_among(const std::vector<std::string>& flags) {
  FlagNames names;
  for (const config::ConfigField& field : methods::config_fields()) {
    const std::string theirs = config::same_meaning(field.name, flags);
    if (!theirs.empty()) names[field.name] = "--" + theirs;
  }
  return names;
}

}  // namespace cohort::dialects
