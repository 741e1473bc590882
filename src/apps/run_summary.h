// What a run came to, for people and for programs.
#pragma once

#include <cstdio>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "engine/trainer.h"

namespace cohort {

// "rank 1 held the others up 48.0 ms a step (19% of the time), by its data": the one worker that
// others wait for in most of `steps`, if that costs anything worth a word; else "".
std::string late_text(const std::vector<Lateness>& late, Step steps, double seconds);

std::string with_commas(std::int64_t number);

// The content of summary.json.
nlohmann::json summarize(const TrainingOutcome& outcome, const std::filesystem::path& run);

void print_summary(std::FILE* out, const TrainingOutcome& outcome,
                   const std::filesystem::path& run);

}  // namespace cohort
