// A configuration as the command that asks for it, so that another program's flags can be shown in
// our own words.
#pragma once

#include <string>
#include <vector>

#include "config/run_config.h"

namespace cohort::dialects {

// `cohort train` with a flag for every setting that differs from its default, in the order of the
// table of settings, then `extra` as it is.
std::vector<std::string> native_command(const config::RunConfig& config,
                                        const std::vector<std::string>& extra = {});

// The words as one line that a POSIX shell takes apart into the same words again.
std::string shell_line(const std::vector<std::string>& words);

}  // namespace cohort::dialects
