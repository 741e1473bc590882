// The commands of the program. Each is one file that adds its own subcommand to the parser; what
// it does when chosen becomes the exit status:
//   0 done, 1 failed, 2 bad usage, 130 interrupted (Ctrl-C) after saving
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace cohort::apps {

// The help group of the flags that a dialect's original did not have.
inline constexpr const char* kOwnFlags = "Ours";

struct Invocation {
  std::vector<std::string> arguments;  // as the user wrote them
  int exit_status = 0;
};

void add_train(CLI::App& program, Invocation& invocation);
void add_eval(CLI::App& program, Invocation& invocation);
void add_export(CLI::App& program, Invocation& invocation);
void add_list(CLI::App& program, Invocation& invocation);
void add_data(CLI::App& program, Invocation& invocation);
void add_launch(CLI::App& program, Invocation& invocation);
void add_serve_parameters(CLI::App& program, Invocation& invocation);
void add_serve_best(CLI::App& program, Invocation& invocation);
void add_token(CLI::App& program, Invocation& invocation);
void add_imagenet(CLI::App& program, Invocation& invocation);
void add_mnist(CLI::App& program, Invocation& invocation);
void add_swamp(CLI::App& program, Invocation& invocation);
void add_dist_train(CLI::App& program, Invocation& invocation);
void add_choco(CLI::App& program, Invocation& invocation);
void add_bench(CLI::App& program, Invocation& invocation);
void add_plot(CLI::App& program, Invocation& invocation);
void add_report(CLI::App& program, Invocation& invocation);
void add_topology(CLI::App& program, Invocation& invocation);
void add_simulate(CLI::App& program, Invocation& invocation);
void add_tune(CLI::App& program, Invocation& invocation);

}  // namespace cohort::apps
