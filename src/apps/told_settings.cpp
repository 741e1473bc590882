#include "apps/told_settings.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "core/text.h"
#include "methods/settings.h"
#include "runs/job_choice.h"

namespace cohort::apps {
namespace {

// Of a process, not of the job.
constexpr std::array<std::string_view, 12> kOwn = {
    "rank",    "servers",  "data-dir", "init",         "job",       "token-file",
    "tls-dir", "insecure", "resume",   "peer-timeout", "state-dir", "runs-dir"};

// The flag by its name, or by the name that another version of the program has for it.
bool is_given(const CLI::App& command, const std::string& flag) {
  constexpr std::array<std::array<const char*, 2>, 2> kSame = {
      {{"--lr", "--learning_rate"}, {"--num_epochs", "--pass_num"}}};
  const auto counted = [&](const std::string& name) {
    const CLI::Option* option = command.get_option_no_throw(name);
    return option != nullptr && option->count() > 0;
  };
  if (counted(flag)) return true;
  return std::any_of(kSame.begin(), kSame.end(), [&](const auto& names) {
    return (flag == names[0] || flag == names[1]) && (counted(names[0]) || counted(names[1]));
  });
}

}  // namespace

nlohmann::json told_settings(const CLI::App& command, const config::RunConfig& config,
                             const dialects::FlagNames& names,
                             const std::vector<std::string>& implied) {
  runs::check_names(config);
  const nlohmann::json all = methods::to_json(config);
  nlohmann::json told = nlohmann::json::object();
  for (const std::string& name : implied) told[name] = all.at(name);
  for (const auto& [name, words] : names) {
    if (!all.contains(name) || std::find(kOwn.begin(), kOwn.end(), name) != kOwn.end()) continue;
    for (const std::string& word : split(words, ' ')) {
      if (word.rfind("--", 0) == 0 && is_given(command, word)) told[name] = all[name];
    }
  }
  return told;
}

}  // namespace cohort::apps
