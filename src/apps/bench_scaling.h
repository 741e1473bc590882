// `cohort bench scaling`: how much faster several workers are, and where the rest went.
#pragma once

#include <CLI/CLI.hpp>

namespace cohort::apps {

void add_scaling_bench(CLI::App& bench_command);

}  // namespace cohort::apps
