// How settings apply to a text.
#pragma once

#include "config/run_config.h"
#include "data/registry.h"

namespace cohort::engine {

// How the data set is to be cut if it is text. Throws ConfigError when another set is asked for
// what only texts have.
data::TextRequest text_request(const config::RunConfig& config);

// Throws ConfigError for settings that have no meaning for a text, whose parts follow each other.
void check_text_settings(const config::RunConfig& config);

}  // namespace cohort::engine
