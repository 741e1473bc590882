// `cohort bench push-pull`: what a worker and its parameter servers move.
#pragma once

#include <CLI/CLI.hpp>

namespace cohort::apps {

void add_push_pull_bench(CLI::App& bench);

}  // namespace cohort::apps
