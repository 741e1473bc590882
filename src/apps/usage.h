// Help for people at the command line: what --help shows, and what is said about a command that
// could not be understood.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

namespace cohort::apps {

// Help whose lines end where the terminal does ($COLUMNS, else the terminal's width, else 100).
std::shared_ptr<CLI::FormatterBase> make_help_formatter();

// `cohort help [COMMAND]`, for those who do not think of --help.
void add_help(CLI::App& program);

// "cohort bench step": how the user calls it.
std::string full_name(const CLI::App& command);

// The command the user chose, or the program itself.
const CLI::App& innermost(const CLI::App& program);

// What to tell about arguments that nobody asked for: what other tools' words are called here, or
// the nearest that exists.
std::string explain_usage(const CLI::ParseError& error, const CLI::App& program);

// A message about settings, for the command that was chosen: where that is one of the older
// systems' with other names for them, the names are its own, and what it lacks is told to be of
// `cohort train`.
std::string in_own_flags(const std::string& message, const CLI::App& program);

}  // namespace cohort::apps
