#include "runs/agreement.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "engine/version.h"
#include "methods/settings.h"

namespace cohort::runs {
namespace {

// What may differ from host to host.
const std::vector<std::string>& per_process_settings() {
  static const std::vector<std::string> names = {"data-dir", "init", "threads", "loader-threads"};
  return names;
}

// Reading a large data set on a cold disk takes its time.
Deadline deadline() { return deadline_in(std::chrono::minutes(30)); }

std::vector<nlohmann::json> gather(collectives::Collectives& processes, const nlohmann::json& own) {
  const std::string text = own.dump();
  std::vector<nlohmann::json> all;
  for (const Bytes& bytes : processes.all_gather(std::as_bytes(std::span(text)), deadline())) {
    const auto* begin = reinterpret_cast<const char*>(bytes.data());
    all.push_back(
        nlohmann::json::parse(begin, begin + bytes.size(), nullptr, /*allow_exceptions=*/false));
    if (!all.back().is_object()) {
      throw PeerError("process " + std::to_string(all.size() - 1) +
                      " sent something else than its settings: is it the same program?");
    }
  }
  return all;
}

std::string differences(const nlohmann::json& first, const nlohmann::json& other) {
  std::vector<std::string> found;
  for (const auto& [key, value] : first.items()) {
    if (std::count(per_process_settings().begin(), per_process_settings().end(), key) > 0) continue;
    const nlohmann::json theirs = other.value(key, nlohmann::json());
    if (theirs != value) {
      const bool is_fact = key.find(' ') != std::string::npos;  // not a setting
      found.push_back((is_fact ? "" : "--") + key + " is " + theirs.dump() + " instead of " +
                      value.dump());
    }
  }
  return join(found, ", ");
}

constexpr const char* kSameCommand = "Start all with the same command and the same program";

nlohmann::json settings_of(const config::RunConfig& config) {
  nlohmann::json own = methods::to_json(config);
  own["version of cohort"] = engine::version();
  own["version of libtorch"] = engine::libtorch_version();
  return own;
}

constexpr const char* kSameFiles = "Give every host the same files, see --data-dir";

nlohmann::json facts_of(const data::DataSplits& data) {
  std::uint64_t labels = 0;
  for (std::int64_t i = 0; i < data.train->size(); ++i) {
    labels = labels * 0x100000001b3 + static_cast<std::uint64_t>(data.train->label(i)) + 1;
  }
  return {{"number of training samples", data.train->size()},
          {"number of test samples", data.test->size()},
          {"number of classes", data.train->class_names().size()},
          {"hash of the labels", labels}};
}

std::string other_than_first(std::size_t process, const std::string& what, const std::string& found,
                             const std::string& advice) {
  return "process " + std::to_string(process) + " has other " + what + " than process 0: " + found +
         ". " + advice;
}

void require_same(collectives::Collectives& processes, const nlohmann::json& own,
                  const std::string& what, const std::string& advice) {
  const std::vector<nlohmann::json> all = gather(processes, own);
  for (std::size_t process = 1; process < all.size(); ++process) {
    const std::string found = differences(all[0], all[process]);
    if (found.empty()) continue;
    throw ConfigError(other_than_first(process, what, found, advice));
  }
}

}  // namespace

void require_same_settings(collectives::Collectives& processes, const config::RunConfig& config) {
  require_same(processes, settings_of(config), "settings", kSameCommand);
}

std::string settings_text(const config::RunConfig& config) { return settings_of(config).dump(); }

void require_same_settings(const std::string& first, int process, const config::RunConfig& config) {
  const std::string found = differences(nlohmann::json::parse(first), settings_of(config));
  if (!found.empty()) throw ConfigError(other_than_first(process, "settings", found, kSameCommand));
}

void require_same_data(collectives::Collectives& processes, const data::DataSplits& data) {
  if (processes.size() > 1) require_same(processes, facts_of(data), "data", kSameFiles);
}

std::string data_facts(const data::DataSplits& data) { return facts_of(data).dump(); }

void require_same_data(const std::string& first, int process, const data::DataSplits& data) {
  const std::string found = differences(nlohmann::json::parse(first), facts_of(data));
  if (!found.empty()) throw ConfigError(other_than_first(process, "data", found, kSameFiles));
}

std::string from_first_process(collectives::Collectives& processes, const std::string& text) {
  const std::vector<Bytes> all = processes.all_gather(
      std::as_bytes(std::span(processes.rank() == 0 ? text : std::string())), deadline());
  return {reinterpret_cast<const char*>(all[0].data()), all[0].size()};
}

}  // namespace cohort::runs
