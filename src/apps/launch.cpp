#include "apps/launch.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "apps/command.h"
#include "apps/environment.h"
#include "apps/job_restarts.h"
#include "core/error.h"
#include "core/text.h"
#include "engine/run_directory.h"
#include "launch/launcher_output.h"
#include "launch/local_processes_job.h"
#include "launch/local_processes_servers.h"
#include "launch/mpirun.h"
#include "launch/supervise.h"
#include "methods/method_traits.h"
#include "methods/settings.h"
#include "methods/update_method.h"
#include "network/identity.h"
#include "storage/file.h"

namespace cohort::apps {
namespace {

volatile std::sig_atomic_t stops = 0;

extern "C" void on_launch_stop(int) {
  stops = stops + 1;
  // At once, and once for the job: the processes are asked in a way that they say nothing to.
  if (stops == 1) say_stopping();
}

void watch_launch_signals() {
  struct sigaction action = {};
  action.sa_handler = on_launch_stop;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
}

constexpr const char* kNoRestarts = "--restarts is for train, which can go on where it stood";

struct Flags {
  launch::LaunchRequest request;
  int servers = 0;
  std::string state_dir;
  std::optional<int> restarts;
  bool dry_run = false;
};

void check_command(const CLI::App& program, const std::vector<std::string>& arguments) {
  if (arguments.empty()) return;
  std::vector<std::string> known;
  for (const CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; })) {
    const std::string name = command->get_name();
    if (name != "launch" && name != "help") known.push_back(name);
  }
  for (const std::string& name : known) {
    if (name == arguments.front()) return;
  }
  const bool help = arguments.front() == "help";
  const std::string own = help ? "\nfor its own flags: cohort launch --help" : "";
  throw ConfigError(unknown_name("command to launch", arguments.front(), known) + own);
}

std::string hosts_advice(const Flags& flags) {
  const std::string count = std::to_string(flags.request.processes);
  const std::string begin =
      "cohort launch starts such a job on this host alone: leave out --hosts, or make a secret "
      "with "
      "`cohort token > token`, copy it to the hosts, and start each process by hand with "
      "--token-file token:";
  if (flags.servers == 0) {
    return begin + " RANK=0 WORLD_SIZE=" + count +
           " MASTER_ADDR=HOST0 MASTER_PORT=29500 cohort train --engine tcp ..., and so on to "
           "RANK=" +
           std::to_string(flags.request.processes - 1) + "; or use --engine mpi";
  }
  return begin + " servers as `cohort serve-parameters --listen HOST:7000 --index 0 --workers " +
         count +
         "`, workers as `cohort train --method parameter-server --servers HOST:7000,... "
         "--workers " +
         count + " --rank 0`";
}

launch::LocalControl local_control() {
  return {.errors = [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); },
          .stops = [] { return static_cast<int>(stops); },
          .environment = launch::environment_for_children(::environ)};
}

int dry_run(const std::vector<launch::LocalProcess>& processes) {
  for (const launch::LocalProcess& process : processes)
    std::printf("%s\n", launch::quoted(process).c_str());
  return 0;
}

// The settings that a train command takes over, before its flags.
config::RunConfig base_settings(const std::vector<std::string>& arguments) {
  if (const std::string run = launch::value_in(arguments, "--resume"); !run.empty()) {
    return engine::read_run_config(run);
  }
  const std::string file = launch::value_in(arguments, "--config");
  config::RunConfig config;
  if (!file.empty()) methods::merge_json(config, storage::read_text_file(file, 1 << 20), file);
  return config;
}

// What it asks for: by flag, or in those settings.
std::string method_in(const std::vector<std::string>& arguments) {
  const std::string method = launch::value_in(arguments, "--method");
  return method.empty() ? base_settings(arguments).method : method;
}

std::int64_t workers_in(const std::vector<std::string>& arguments) {
  const std::string workers = launch::value_in(arguments, "--workers");
  return workers.empty() ? base_settings(arguments).workers : std::atoll(workers.c_str());
}

bool trains(const launch::LaunchRequest& request) {
  return !request.arguments.empty() && request.arguments.front() == "train";
}

// Runs a job that ends with the first process that is lost: once, and as often again as --restarts
// says. `job` is its name, unless it names itself; `run` starts the request that it is given.
int run_restarted(const Flags& flags, const std::string& job,
                  const std::function<int(const launch::LaunchRequest&)>& run) {
  const std::string runs = launch::value_in(flags.request.arguments, "--runs-dir");
  const std::string own_name = launch::value_in(flags.request.arguments, "--job");
  const JobRestarts restarts{
      .most = flags.dry_run ? 0 : flags.restarts.value_or(0),
      .runs_dir = runs.empty() ? "runs" : runs,
      .job = network::to_text(network::job_id_of(own_name.empty() ? job : own_name)),
      .stopped = [] { return stops > 0; },
      .say = local_control().errors};
  return run_with_restarts(restarts, flags.request.arguments,
                           [&](const std::vector<std::string>& arguments) {
                             launch::LaunchRequest request = flags.request;
                             request.arguments = arguments;
                             return run(request);
                           });
}

int run_local(const Flags& flags) {
  launch::LocalSurvival survival;
  survival.go_on = trains(flags.request) &&
                   methods::traits_of(method_in(flags.request.arguments)).survives_losses;
  // A process with several workers is gone on without.
  const std::int64_t workers = workers_in(flags.request.arguments);
  survival.restarts = workers == 0 || workers == flags.request.processes
                          ? flags.restarts.value_or(launch::kRestarts)
                          : 0;
  const std::string name = network::to_text(network::random_job_id());
  const auto run = [&](const launch::LaunchRequest& request) {
    const std::vector<launch::LocalProcess> job = launch::local_job({.processes = request.processes,
                                                                     .program = request.program,
                                                                     .arguments = request.arguments,
                                                                     .job = name});
    if (flags.dry_run) return dry_run(job);
    watch_launch_signals();
    return launch::run_local_job(job, local_control(), survival);
  };
  return survival.go_on ? run(flags.request) : run_restarted(flags, name, run);
}

int run_by_launcher(const Flags& flags) {
  // mpirun and srun pass it on.
  if (flags.restarts) ::setenv("COHORT_JOB", network::to_text(network::random_job_id()).c_str(), 0);
  const char* const job = launch::own_variable("COHORT_JOB");
  return run_restarted(flags, job != nullptr ? job : "", [&](const launch::LaunchRequest& request) {
    return run_with_launcher(request, flags.dry_run);
  });
}

// A server of --method swamp judges models, so it has to know all that the workers know.
std::vector<std::string> serve_best_arguments(const std::vector<std::string>& train) {
  std::vector<std::string> words = {"serve-best"};
  for (std::size_t i = 1; i < train.size(); ++i) {
    const bool resumes = train[i] == "--resume" && i + 1 < train.size();
    if (!resumes && !train[i].starts_with("--resume=")) {
      words.push_back(train[i]);
      continue;
    }
    const std::string run = resumes ? train[++i] : train[i].substr(9);
    words.insert(words.end(), {"--config", (std::filesystem::path(run) / "run.json").string()});
  }
  return words;
}

int run_servers(const Flags& flags) {
  launch::LocalServersRequest request{.servers = flags.servers,
                                      .workers = flags.request.processes,
                                      .program = flags.request.program,
                                      .arguments = flags.request.arguments,
                                      .state_dir = flags.state_dir,
                                      .restarts = flags.restarts.value_or(launch::kRestarts)};
  const std::string method = method_in(request.arguments);
  if (methods::traits_of(method).servers == methods::MethodTraits::Servers::kBestModel) {
    if (flags.servers != 1) {
      throw ConfigError("--method " + method +
                        " has one server, which keeps the best model: --servers 1");
    }
    request.server_arguments = serve_best_arguments(request.arguments);
  }
  if (flags.dry_run) return dry_run(launch::local_servers_job(request, "JOB_FOLDER").processes);
  watch_launch_signals();
  return launch::run_local_servers(request, local_control());
}

}  // namespace

int run_with_launcher(const launch::LaunchRequest& request, bool dry_run) {
  const launch::LaunchHost host = launch::this_host(launch::own_variable, ::environ);
  const launch::LaunchCommand command = launch::launch_command(request, host);
  if (dry_run) {
    std::printf("%s\n", launch::quoted(command.arguments).c_str());
    return 0;
  }
  watch_launch_signals();
  launch::LauncherOutput output([](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);  // unbuffered: it goes on at once
  });
  const int status = launch::supervise(command.arguments,
                                       {.errors = [&](std::string_view text) { output.read(text); },
                                        .stops = [] { return static_cast<int>(stops); }});
  output.finish();
  const int result = launch::launch_status(status, stops);
  if (result != 1) return result;
  const std::string why = launch::explain_launch_failure(output.kept_back(), request);
  if (!why.empty()) {
    std::fprintf(stderr, "cohort: %s\n", why.c_str());
    return result;
  }
  const std::string rest = launch::without_noise(output.kept_back());
  std::fwrite(rest.data(), 1, rest.size(), stderr);
  if (!rest.empty() || status != 1) {  // the program explains its own failures and ends with 1
    std::fprintf(stderr, "cohort: %s ended with status %d\n", command.launcher.c_str(), status);
  }
  return result;
}

namespace {

// `counted`: -n is there. Throws ConfigError.
void check_launch(const CLI::App& program, bool counted, const std::vector<std::string>& command) {
  constexpr const char* kExample = ", as in: cohort launch -n 2 -- train --model resnet20";
  check_command(program, command);
  if (!counted) throw ConfigError(std::string("-n is required: how many processes") + kExample);
  if (command.empty()) {
    throw ConfigError(std::string("a command is required: what the processes run") + kExample);
  }
}

}  // namespace

void mark_launched_command(const CLI::App& program, std::vector<std::string>& words) {
  if (words.empty() || words.front() != "launch") return;
  const CLI::App* launch = program.get_subcommand("launch");
  bool counted = false;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const bool marked = words[i] == "--";
    if (marked || !words[i].starts_with('-')) {
      const auto command = words.begin() + static_cast<std::ptrdiff_t>(marked ? i + 1 : i);
      check_launch(program, counted, {command, words.end()});
      if (!marked) words.insert(command, "--");
      return;
    }
    // As mpirun has it; the parser would take the p for a number.
    if (words[i].starts_with("-np")) throw ConfigError("unknown flag -np: here it is -n");
    if (words[i] == "-h" || words[i] == "--help") return;
    const std::string name =
        words[i].substr(0, words[i].starts_with("--") ? words[i].find('=') : 2);
    const CLI::Option* flag = launch->get_option_no_throw(name);
    if (flag == nullptr) return;  // the parser says that there is none such
    counted = counted || name == "-n";
    if (name == words[i] && flag->get_expected_min() > 0) ++i;
  }
  check_launch(program, counted, {});
}

namespace {

int run_launch(const Flags& flags) {
  const std::string named = launch::value_in(flags.request.arguments, "--engine");
  const bool tcp = (named.empty() ? flags.request.engine : named) == "tcp";
  if (flags.restarts && !trains(flags.request)) throw ConfigError(kNoRestarts);
  if (!tcp && flags.servers == 0) return run_by_launcher(flags);
  if (!flags.request.hosts_file.empty()) throw ConfigError(hosts_advice(flags));
  return flags.servers > 0 ? run_servers(flags) : run_local(flags);
}

}  // namespace

void add_launch(CLI::App& program, Invocation& invocation) {
  CLI::App* command =
      program.add_subcommand("launch", "Run a command in many processes, on many hosts");
  const auto flags = std::make_shared<Flags>();
  launch::LaunchRequest& request = flags->request;
  command->add_option("-n", request.processes, "processes in all; with --servers: workers")
      ->required();
  command
      ->add_option("--servers", flags->servers,
                   "also start so many parameter servers, for --method parameter-server, or the "
                   "one server of --method swamp")
      ->check(CLI::Range(0, 1024));
  command->add_option("--state-dir", flags->state_dir,
                      "where the servers keep snapshots; default: a folder for this job alone");
  command
      ->add_option("--restarts", flags->restarts,
                   "how often servers, and workers that gossip over tcp, are started again when a "
                   "signal ended them [3]; other jobs as a whole, from their last checkpoint, when "
                   "they failed [0]")
      ->check(CLI::Range(0, 1000));
  command->add_option("--hosts", request.hosts_file,
                      "file with a line for each host: node1 slots=4; default: this machine");
  command
      ->add_option("--engine", request.engine,
                   "given to a train that names none; tcp needs no mpirun")
      ->capture_default_str();
  command->add_option("--with", request.launcher, "mpirun, srun or auto")->capture_default_str();
  command->add_option("--agent", request.agent, "what reaches another host instead of ssh");
  command->add_flag("--oversubscribe", request.oversubscribe, "allow more processes than slots");
  command->add_flag("--dry-run", flags->dry_run, "print the launcher's command and do nothing");
  command->add_option("command", request.arguments, "train and its flags")->required();
  command->footer(
      "Examples:\n"
      "  cohort launch -n 2 -- train --model resnet20 --method all-reduce\n"
      "  cohort launch --engine tcp -n 2 -- train --model resnet20 --method all-reduce\n"
      "  cohort launch --servers 1 -n 2 -- train --model resnet20 --method parameter-server");
  command->callback([&invocation, flags] {
    flags->request.program = std::filesystem::read_symlink("/proc/self/exe");
    invocation.exit_status = run_launch(*flags);
  });
}

}  // namespace cohort::apps
