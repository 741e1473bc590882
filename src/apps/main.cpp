#include <c10/util/Exception.h>

#include <cstdio>
#include <exception>

#include "apps/command.h"
#include "apps/version.h"
#include "core/error.h"
#include "engine/host_memory.h"

namespace {

constexpr int kFailed = 1;
constexpr int kBadUsage = 2;

int run(int argc, char** argv) {
  CLI::App program("Trains neural networks with every way of keeping many workers in step.",
                   "cohort");
  program.require_subcommand(1);
  program.set_version_flag("--version", cohort::version_text());
  program.footer("Each command has its own --help. Start with: cohort train");
  cohort::Invocation invocation{.arguments = {argv, argv + argc}};
  cohort::add_train(program, invocation);
  cohort::add_eval(program, invocation);
  cohort::add_export(program, invocation);
  cohort::add_list(program, invocation);
  cohort::add_data(program, invocation);
  cohort::add_bench(program, invocation);
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return program.exit(success);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "cohort: %s\nTry: cohort %s --help\n", error.what(),
                 argc > 1 && argv[1][0] != '-' ? argv[1] : "");
    return kBadUsage;
  }
  return invocation.exit_status;
}

}  // namespace

int main(int argc, char** argv) {
  cohort::keep_freed_memory();
  try {
    return run(argc, argv);
  } catch (const cohort::ConfigError& error) {
    std::fprintf(stderr, "cohort: %s\n", error.what());
    return kBadUsage;
  } catch (const c10::Error& error) {
    std::fprintf(stderr, "cohort: libtorch: %s\n", error.what_without_backtrace());
    return kFailed;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cohort: %s\n", error.what());
    return kFailed;
  }
}
