// `cohort bench compress`: how fast vectors are compressed, beside a copy of the same memory.
#pragma once

#include <CLI/CLI.hpp>

namespace cohort::apps {

void add_compress_bench(CLI::App& bench);

}  // namespace cohort::apps
