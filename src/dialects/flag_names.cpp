#include "dialects/flag_names.h"

#include <algorithm>
#include <cctype>

#include "config/run_config.h"

namespace cohort {
namespace {

bool is_in_a_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-'; }

bool is_setting(const std::string& name) {
  const auto& fields = config_fields();
  return std::any_of(fields.begin(), fields.end(),
                     [&](const ConfigField& field) { return field.name == name; });
}

std::string word_for(const FlagNames& names, const std::string& name) {
  const auto found = names.find(name);
  if (found != names.end()) return found->second;
  return is_setting(name) ? "the setting " + name : "--" + name;
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
    std::size_t end = at + 2;
    while (end < text.size() && is_in_a_name(text[end])) ++end;
    result += word_for(names, text.substr(at + 2, end - at - 2));
    at = end;
  }
  return result;
}

}  // namespace cohort
