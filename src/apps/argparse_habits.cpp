#include "apps/argparse_habits.h"

#include <algorithm>

#include "apps/command.h"
#include "core/error.h"
#include "core/text.h"

namespace cohort::apps {
namespace {

// The long flags of one group that begin with `beginning`, one name of each option.
std::vector<std::string> flags_beginning(const CLI::App& command, const std::string& beginning,
                                         bool own) {
  std::vector<std::string> found;
  for (const CLI::Option* option : command.get_options()) {
    if ((option->get_group() == kOwnFlags) != own) continue;
    for (const std::string& name : option->get_lnames()) {
      if (!name.starts_with(beginning)) continue;
      found.push_back(name);
      break;
    }
  }
  return found;
}

bool is_flag(const CLI::App& command, const std::string& name) {
  return command.get_option_no_throw("--" + name) != nullptr;
}

// "--batch=5" for "--b=5".
std::string whole_flag(const CLI::App& command, const std::string& word) {
  const std::size_t end = std::min(word.find('='), word.size());
  const std::string name = word.substr(2, end - 2);
  if (name.empty() || is_flag(command, name)) return word;
  for (const bool own : {false, true}) {
    std::vector<std::string> found = flags_beginning(command, name, own);
    if (found.size() == 1) return "--" + found.front() + word.substr(end);
    if (found.empty()) continue;
    for (std::string& flag : found) flag = "--" + flag;
    throw ConfigError("--" + name + " may be " + join(found, " or ") + ": write more of it");
  }
  return word;
}

}  // namespace

void take_last_of_repeated(CLI::App& command) {
  for (CLI::Option* option : command.get_options([](const CLI::Option* each) {
         return each->nonpositional() && each->get_items_expected_max() <= 1;
       })) {
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
  for (CLI::App* each : command.get_subcommands([](CLI::App*) { return true; })) {
    take_last_of_repeated(*each);
  }
}

std::vector<std::string> with_whole_flags(const CLI::App& command, std::vector<std::string> words) {
  const CLI::App* chosen = &command;
  for (std::string& word : words) {
    if (word == "--") break;
    if (word.starts_with("--")) {
      word = whole_flag(*chosen, word);
      continue;
    }
    const auto inner =
        chosen->get_subcommands([&](const CLI::App* each) { return each->get_name() == word; });
    if (!inner.empty()) chosen = inner.front();
  }
  return words;
}

}  // namespace cohort::apps
