#include <c10/util/Exception.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <utility>

#include "apps/argparse_habits.h"
#include "apps/command.h"
#include "apps/launch.h"
#include "apps/usage.h"
#include "core/error.h"
#include "core/exit_status.h"
#include "engine/host_memory.h"
#include "engine/version.h"
#include "runs/memory.h"
#ifdef COHORT_WITH_MPI
#include "launch/mpi_job.h"
#endif

namespace cohort::apps {
namespace {

constexpr int kFailed = 1;
constexpr const char* kDialects[] = {"imagenet", "mnist", "swamp", "dist_train", "choco"};

// A stream that was closed for us must not become the first file we open.
void open_standard_streams() {
  for (int stream = 0; stream <= STDERR_FILENO; ++stream) {
    if (::fcntl(stream, F_GETFD) < 0) static_cast<void>(::open("/dev/null", O_RDWR));
  }
}

int run(int argc, char** argv) {
  CLI::App program("Trains neural networks with every way of keeping many workers in step.",
                   "cohort");
  program.formatter(make_help_formatter());  // before the commands, which take it over
  program.require_subcommand(1);
  program.set_version_flag("--version", engine::version_text());
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
  add_help(program);
  if (argc == 1) {
    std::fputs(program.help().c_str(), stderr);
    return kExitBadUsage;
  }
  std::vector<std::string> words(argv + 1, argv + argc);
  for (const char* name : kDialects) {
    CLI::App& command = *program.get_subcommand(name);
    take_last_of_repeated(command);
    if (words.front() == name) words = with_whole_flags(command, std::move(words));
  }
  try {
    mark_launched_command(program, words);
    std::reverse(words.begin(), words.end());  // as the parser wants them
    program.parse(std::move(words));
  } catch (const CLI::Success& success) {  // --help, --version
    return program.exit(success);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "cohort: %s\nTry: %s --help\n", explain_usage(error, program).c_str(),
                 full_name(innermost(program)).c_str());
    return kExitBadUsage;
  } catch (const ConfigError& error) {
    throw ConfigError(in_own_flags(error.what(), program));
  } catch (const std::exception& error) {
    if (const auto text = runs::out_of_memory_text(error))
      throw RunError(in_own_flags(*text, program));
    if (dynamic_cast<const RunError*>(&error) == nullptr) throw;
    throw RunError(in_own_flags(error.what(), program));
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    throw RunError("the output could not be written");
  }
  return invocation.exit_status;
}

}  // namespace
}  // namespace cohort::apps

namespace {

int guarded_run(int argc, char** argv) {
  try {
    return cohort::apps::run(argc, argv);
  } catch (const cohort::ConfigError& error) {
    std::fprintf(stderr, "cohort: %s\n", error.what());
    return cohort::kExitBadUsage;
  } catch (const cohort::InterruptedError& error) {
    std::fprintf(stderr, "cohort: %s\n", error.what());
    return cohort::kExitInterrupted;
  } catch (const c10::Error& error) {
    std::fprintf(stderr, "cohort: libtorch: %s\n", error.what_without_backtrace());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cohort: %s\n", error.what());
  }
  return cohort::apps::kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  cohort::apps::open_standard_streams();
  cohort::engine::keep_freed_memory();
  const int status = guarded_run(argc, argv);
#ifdef COHORT_WITH_MPI
  cohort::launch::end_if_mpi_is_unfinished(status);
#endif
  return status;
}
