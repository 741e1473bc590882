// `cohort bench all-reduce`.
#pragma once

#include <CLI/CLI.hpp>

namespace cohort::apps {

void add_all_reduce_bench(CLI::App& bench_command);

}  // namespace cohort::apps
