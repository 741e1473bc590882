// Command lines as Python's argparse reads them, for the commands whose originals were Python
// programs: a long flag may be shortened as long as it is clear which one is meant, and of a flag
// that is given twice the last counts.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace cohort::apps {

// Lets the last of a repeated flag count, in `command` and its subcommands.
void take_last_of_repeated(CLI::App& command);

// `words` (what follows the program's name) with the shortened flags of `command` spelt out; those
// of the chosen subcommand, where it has some. The flags that the original had come first: ours
// make none of theirs unclear. Throws ConfigError where several flags may be meant.
std::vector<std::string> with_whole_flags(const CLI::App& command, std::vector<std::string> words);

}  // namespace cohort::apps
