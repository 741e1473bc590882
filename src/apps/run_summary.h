// What a run came to, for people and for programs.
#pragma once

#include <cstdio>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "engine/trainer.h"

namespace cohort {

std::string with_commas(std::int64_t number);

// The content of summary.json.
nlohmann::json summarize(const TrainingOutcome& outcome, Step steps_per_epoch,
                         const std::filesystem::path& run);

void print_summary(std::FILE* out, const TrainingOutcome& outcome,
                   const std::filesystem::path& run);

}  // namespace cohort
