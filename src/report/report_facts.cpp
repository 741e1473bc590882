#include "report/report_facts.h"

#include <algorithm>

#include "core/text.h"
#include "report/axis.h"
#include "report/json_fields.h"

namespace cohort::report {
namespace {

using Runs = std::vector<RunRecords>;

std::string whole(std::optional<double> value) { return value ? fixed_number(*value, 0) : ""; }

std::string joined(std::vector<std::string> parts, const char* separator) {
  std::erase(parts, "");
  return join(parts, separator);
}

std::string with(const std::string& value, const std::string& unit) {
  return value.empty() ? "" : value + unit;
}

std::string model_of(const RunRecords& run) {
  return joined({run.setting("model"),
                 with(whole(number_at(run.description, {"model", "parameters"})), " parameters")},
                ", ");
}

std::string data_of(const RunRecords& run) {
  const auto counted = [&](const char* name, const std::string& unit) {
    return with(whole(number_at(run.description, {"data", name})), unit);
  };
  return joined(
      {run.setting("data"), counted("train_samples", " training samples"),
       counted("validation_samples", " validation samples"),
       counted("test_samples", " test samples"), counted("train_words", " training words"),
       counted("test_words", " test words"),
       with(whole(number_at(run.description, {"data", "vocabulary", "words"})), " different ones")},
      ", ");
}

std::string training_of(const RunRecords& run) {
  const auto named = [&](const char* name) {
    const std::string value = run.setting(name);
    return value.empty() ? "" : std::string(name) + " " + value;
  };
  return joined({named("epochs"), named("batch"), run.setting("optimizer"), named("lr"),
                 named("momentum"), named("weight-decay"), named("schedule")},
                ", ");
}

std::string machine_of(const RunRecords& run) {
  const auto host = [&](const char* name) { return text_at(run.description, {"host", name}); };
  return joined({host("name"), host("cpu"), with(host("cores"), " cores"), host("system")}, ", ");
}

std::string versions_of(const RunRecords& run) {
  const auto named = [&](const char* name) {
    const std::string version = text_at(run.description, {"host", name});
    return version.empty() ? "" : std::string(name) + " " + version;
  };
  return joined({named("cohort"), named("libtorch")}, ", ");
}

std::string time_of(const Runs& runs) {
  std::vector<std::string> times;
  for (const RunRecords& run : runs) {
    if (!run.begun.empty()) times.push_back(run.begun);
  }
  if (times.empty()) return "";
  const auto [first, last] = std::minmax_element(times.begin(), times.end());
  return *first == *last ? *first : *first + " to " + *last;
}

// As a shell would take it: words with other than plain characters in quotes.
std::string command_line(const nlohmann::json& words) {
  std::vector<std::string> parts;
  if (!words.is_array()) return "";
  for (const nlohmann::json& word : words) {
    if (!word.is_string()) continue;
    std::string text = word.get<std::string>();
    if (parts.empty()) text = text.substr(text.rfind('/') + 1);
    const bool plain =
        !text.empty() && text.find_first_of(" \t\n\"'\\$&|;<>()*?#~`!{}[]") == std::string::npos;
    if (!plain) {
      std::string quoted = "'";
      for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
      text = quoted + "'";
    }
    parts.push_back(std::move(text));
  }
  return join(parts, " ");
}

}  // namespace

// What the runs say, each text once, in their order.
std::string said_by(const Runs& runs, const std::function<std::string(const RunRecords&)>& what) {
  constexpr std::size_t kMax = 4;
  std::vector<std::string> texts;
  for (const RunRecords& run : runs) {
    const std::string text = what(run);
    if (!text.empty() && std::find(texts.begin(), texts.end(), text) == texts.end()) {
      texts.push_back(text);
    }
  }
  const std::size_t count = texts.size();
  texts.resize(std::min(count, kMax));
  return join(texts, "; ") +
         (count > kMax ? "; and " + std::to_string(count - kMax) + " more" : "");
}

std::vector<Fact> facts_of(const Runs& runs) {
  std::vector<Fact> facts = {
      {"Model", said_by(runs, model_of)},
      {"Data", said_by(runs, data_of)},
      {"Method", said_by(runs, [](const RunRecords& run) { return run.setting("method"); })},
      {"Workers", said_by(runs, [](const RunRecords& run) { return run.setting("workers"); })},
      {"Training", said_by(runs, training_of)},
      {"Machine", said_by(runs, machine_of)},
      {"Versions", said_by(runs, versions_of)},
      {"Begun", time_of(runs)},
  };
  std::erase_if(facts, [](const Fact& fact) { return fact.value.empty(); });
  return facts;
}

std::vector<Fact> commands_of(const Runs& runs, const std::vector<std::string>& labels) {
  std::vector<Fact> commands;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string text = command_line(field_at(runs[i].description, {"command"}));
    if (text.empty()) continue;
    // A command that began several runs, such as one of a grid, stands there once.
    const auto same = std::find_if(commands.begin(), commands.end(),
                                   [&](const Fact& fact) { return fact.value == text; });
    if (same == commands.end()) {
      commands.push_back({labels[i], text});
    } else {
      same->name += ", " + labels[i];
    }
  }
  return commands;
}

}  // namespace cohort::report
