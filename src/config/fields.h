// What tables of settings are written with: limits and headings.
#pragma once

#include <string>

#include "config/run_config.h"

namespace cohort::config {

inline constexpr double kMaxCount = 1e15;  // far above any real count, exactly representable
inline constexpr double kAnyNumber = 1e308;

// The headings of --help and docs/configuration.md, in their order.
namespace setting_group {
inline constexpr const char* kWhat = "What to train";
inline constexpr const char* kWorkers = "Workers";
inline constexpr const char* kServers = "Parameter servers";
inline constexpr const char* kSwamp = "Swamp";
inline constexpr const char* kGossip = "Gossip and compression";
inline constexpr const char* kNetwork = "Network";
inline constexpr const char* kModel = "Model settings";
inline constexpr const char* kData = "Data";
inline constexpr const char* kOptimizer = "Optimizer";
inline constexpr const char* kRate = "Learning rate over time";
inline constexpr const char* kStop = "When to stop";
inline constexpr const char* kRecord = "Evaluation, records, checkpoints";
}  // namespace setting_group

// Its place in that order; headings of a method's own come after those of the other methods.
int place_of_group(const std::string& group);

}  // namespace cohort::config
