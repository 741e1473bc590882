#include <c10/util/Exception.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <exception>

#include "apps/command.h"
#include "apps/version.h"
#include "core/error.h"
#include "core/text.h"
#include "engine/host_memory.h"
#ifdef COHORT_WITH_MPI
#include "launch/mpi_job.h"
#endif

namespace cohort {
namespace {

constexpr int kFailed = 1;
constexpr int kBadUsage = 2;

// The command the user chose, or the program itself.
const CLI::App& innermost(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : innermost(*chosen.front());
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  return flags;
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    commands.push_back(command->get_name());
  }
  return commands;
}

// What to tell about arguments that nobody asked for: the nearest that exists.
std::string explain(const CLI::ParseError& error, const CLI::App& program) {
  const CLI::App& command = innermost(program);
  for (const std::string& extra : program.remaining(true)) {
    if (extra.rfind("--", 0) == 0) {
      const std::string flag = extra.substr(0, extra.find('='));
      const std::string guess = nearest(flag, flags_of(command));
      return "unknown flag " + flag + (guess.empty() ? "" : "; did you mean " + guess + "?");
    }
    if (!commands_of(command).empty()) return unknown_name("command", extra, commands_of(command));
  }
  return error.what();
}

std::string usage_of(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return (parent == nullptr ? "" : usage_of(*parent) + " ") + app.get_name();
}

// A stream that was closed for us must not become the first file we open.
void open_standard_streams() {
  for (int stream = 0; stream <= STDERR_FILENO; ++stream) {
    if (::fcntl(stream, F_GETFD) < 0) static_cast<void>(::open("/dev/null", O_RDWR));
  }
}

int run(int argc, char** argv) {
  CLI::App program("Trains neural networks with every way of keeping many workers in step.",
                   "cohort");
  program.require_subcommand(1);
  program.set_version_flag("--version", version_text());
  program.footer("Each command has its own --help. Start with: cohort train");
  Invocation invocation{.arguments = {argv, argv + argc}};
  add_train(program, invocation);
  add_eval(program, invocation);
  add_export(program, invocation);
  add_plot(program, invocation);
  add_report(program, invocation);
  add_list(program, invocation);
  add_data(program, invocation);
  add_topology(program, invocation);
  add_simulate(program, invocation);
  add_tune(program, invocation);
  add_bench(program, invocation);
  add_launch(program, invocation);
  add_serve_parameters(program, invocation);
  add_serve_best(program, invocation);
  add_token(program, invocation);
  add_imagenet(program, invocation);
  add_swamp(program, invocation);
  add_mnist(program, invocation);
  add_dist_train(program, invocation);
  add_choco(program, invocation);
  if (argc == 1) {
    std::fputs(program.help().c_str(), stderr);
    return kBadUsage;
  }
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return program.exit(success);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "cohort: %s\nTry: %s --help\n", explain(error, program).c_str(),
                 usage_of(innermost(program)).c_str());
    return kBadUsage;
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    throw RunError("the output could not be written");
  }
  return invocation.exit_status;
}

}  // namespace
}  // namespace cohort

namespace {

int guarded_run(int argc, char** argv) {
  try {
    return cohort::run(argc, argv);
  } catch (const cohort::ConfigError& error) {
    std::fprintf(stderr, "cohort: %s\n", error.what());
    return cohort::kBadUsage;
  } catch (const c10::Error& error) {
    std::fprintf(stderr, "cohort: libtorch: %s\n", error.what_without_backtrace());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cohort: %s\n", error.what());
  }
  return cohort::kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  cohort::open_standard_streams();
  cohort::keep_freed_memory();
  const int status = guarded_run(argc, argv);
#ifdef COHORT_WITH_MPI
  cohort::end_if_mpi_is_unfinished(status);
#endif
  return status;
}
