// What the program takes from the machine it runs on. Nothing below apps/ reads the environment.
#pragma once

#include <atomic>
#include <cstdio>
#include <string>

#include "config/run_config.h"
#include "engine/assemble.h"

namespace cohort::apps {

// $COHORT_DATA_DIR, the user's cache, /usr/share/datasets. Throws ConfigError when the variable
// names no folder: what the user names is never passed over in silence.
data::SearchPath data_search_path();

// For a dialect's flag that the user did not give: the folder that is its default if there is such
// a folder, else empty, which means data_search_path().
std::string default_data_dir(const std::string& folder);

// What `cohort launch --servers` tells a worker: COHORT_SERVERS, COHORT_RANK, COHORT_WORKERS.
// Writes them into the configuration; false when there are none.
bool take_place_from_launcher(config::RunConfig& config);

// True after Ctrl-C or SIGTERM; a second one ends the program at once.
const std::atomic<bool>& stop_requested();
// To be set as if somebody had pressed Ctrl-C.
std::atomic<bool>& stop_flag();
void watch_signals();
// That a signal was heard, to the error stream. Can be called by a signal handler.
void say_stopping();

bool is_terminal(std::FILE* stream);

}  // namespace cohort::apps
