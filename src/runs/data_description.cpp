#include "runs/data_description.h"

#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text.h"
#include "data/text.h"
#include "engine/assemble.h"
#include "runs/run_summary.h"
#include "storage/sha256.h"

namespace cohort::runs {
namespace {

// Words have no line breaks in them.
std::string hash_of(const std::vector<std::string>& words) {
  storage::Sha256 hash;
  for (const std::string& word : words) {
    hash.update(std::as_bytes(std::span(word)));
    hash.update(std::as_bytes(std::span("\n", 1)));
  }
  return hash.finish();
}

// With all training samples as one number: older runs counted those that were kept apart, too.
nlohmann::json together(nlohmann::json description) {
  const nlohmann::json apart = description.value("validation_samples", nlohmann::json());
  if (apart.is_number_integer() && description.contains("train_samples") &&
      description["train_samples"].is_number_integer()) {
    description["train_samples"] =
        description["train_samples"].get<std::int64_t>() + apart.get<std::int64_t>();
  }
  description.erase("validation_samples");
  return description;
}

}  // namespace

nlohmann::json describe_data(const config::RunConfig& config, const data::DataSplits& data) {
  nlohmann::json description = {{"found_at", data.found_at.string()}};
  const std::vector<std::string>& classes = data.train->class_names();
  const data::TextDataset* train = data::as_text(*data.train);
  const data::TextDataset* test = data::as_text(*data.test);
  if (train != nullptr && test != nullptr) {
    description["train_words"] = train->words();
    description["test_words"] = test->words();
    description["vocabulary"] = {{"words", classes.size()}, {"sha256", hash_of(classes)}};
  } else {
    const std::int64_t apart = engine::validation_size(config, *data.train);
    description["train_samples"] = data.train->size() - apart;
    if (apart > 0) description["validation_samples"] = apart;
    description["test_samples"] = data.test->size();
    description["classes"] = classes;
  }
  return description;
}

void require_data_of_run(const std::string& run, const nlohmann::json& document,
                         const config::RunConfig& config, const data::DataSplits& data) {
  const nlohmann::json before = together(document.value("data", nlohmann::json::object()));
  const nlohmann::json now = together(describe_data(config, data));
  for (const auto& [key, value] : now.items()) {
    if (key == "found_at" || !before.contains(key) || before[key] == value) continue;
    throw ConfigError("the data at " + now["found_at"].dump() + " are not those that " + run +
                      " was trained on: other " + key + "; give the right --data-dir");
  }
}

}  // namespace cohort::runs
