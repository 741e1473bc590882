// `cohort bench load`: how fast samples are read, decoded and changed.
#pragma once

#include <CLI/CLI.hpp>

namespace cohort::apps {

void add_load_bench(CLI::App& bench);

}  // namespace cohort::apps
