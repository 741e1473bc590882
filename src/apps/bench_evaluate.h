// `cohort bench evaluate`: how fast models are evaluated, one after another and several at a time.
#pragma once

#include <CLI/CLI.hpp>

namespace cohort::apps {

void add_evaluate_bench(CLI::App& bench);

}  // namespace cohort::apps
