// `cohort bench straggler`: what a slow worker costs the others.
#pragma once

#include <CLI/CLI.hpp>

namespace cohort::apps {

void add_straggler_bench(CLI::App& bench);

}  // namespace cohort::apps
