// A display whose notes name the flags of the dialect that the user wrote in.
#pragma once

#include <memory>

#include "dialects/flag_names.h"
#include "engine/progress.h"

namespace cohort::dialects {

// `progress`, with its notes in_words_of(names); itself when `names` is empty. `names` outlives it.
std::unique_ptr<engine::Progress> translated(std::unique_ptr<engine::Progress> progress,
                                             const FlagNames& names);

}  // namespace cohort::dialects
