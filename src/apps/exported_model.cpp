#include "apps/exported_model.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "methods/settings.h"
#include "storage/safetensors.h"

namespace cohort::apps {
namespace {

constexpr const char* kSettingsKey = "cohort";

constexpr const char* kExported[] = {
    "model",
    "depth",
    "widen",
    "growth",
    "rnn-hidden",
    "rnn-layers",
    "tie-weights",
    "data",
    "image-size",
    "normalize",
    "bptt",
    "lowercase",
    "synthetic-classes",
    "eval-split",
    "seed",
    "train-size",
    "train-skip",
    "test-size",
    "dropout",
    "synthetic-shape",
};

}  // namespace

std::map<std::string, std::string> export_metadata(const config::RunConfig& config) {
  const nlohmann::json all = methods::to_json(config);
  nlohmann::json settings;
  for (const char* name : kExported) settings[name] = all.at(name);
  return {{"format", "pt"}, {kSettingsKey, settings.dump()}};
}

std::optional<config::RunConfig> exported_config(const std::filesystem::path& file) {
  try {
    const storage::SafetensorsFile model = storage::SafetensorsFile::open(file);
    const auto settings = model.metadata().find(kSettingsKey);
    if (settings == model.metadata().end()) return std::nullopt;
    config::RunConfig config;
    methods::merge_json(config, settings->second, file.string());
    return config;
  } catch (const FileError&) {  // whoever reads the weights says so
    return std::nullopt;
  }
}

}  // namespace cohort::apps
