#include <spdlog/fmt/fmt.h>

#include <cstdio>
#include <memory>

#include "apps/command.h"
#include "core/error.h"
#include "network/credentials.h"
#include "network/secret_file.h"

namespace cohort::apps {
namespace {

struct TokenFlags {
  std::string file;
  std::string tls_dir;
  std::string job;
  int servers = 0;
  int workers = 0;
  int days = 30;
};

void print_token() {
  fmt::print("{}\n", network::make_token());
  fmt::print(stderr,
             "Give it to every process of the job, as COHORT_TOKEN or in a file of your own with "
             "--token-file (mode 0600; `cohort token --file F` writes one). Who has it is in.\n");
}

void write_token(const std::string& file) {
  network::write_secret_file(file, network::make_token() + "\n");
  fmt::print(stderr, "Copy {} to every host of the job, and give each process --token-file {}\n",
             file, file);
}

void write_certificates(const TokenFlags& flags) {
  if (flags.job.empty()) {
    throw ConfigError("--tls-dir needs --job NAME: certificates are for one job alone");
  }
  if (flags.servers + flags.workers == 0) {
    throw ConfigError("--tls-dir needs --servers, --workers or both: one certificate for each");
  }
  network::make_authority(flags.tls_dir, network::job_id_of(flags.job), flags.servers,
                          flags.workers, flags.days);
  fmt::print(stderr,
             "Give server I --tls-dir {}/server-I and worker I --tls-dir {}/worker-I, all of them "
             "--job {}; each needs its own folder only. Valid for {} days.\n",
             flags.tls_dir, flags.tls_dir, flags.job, flags.days);
}

void run_token(const TokenFlags& flags) {
  if (!flags.file.empty() && !flags.tls_dir.empty()) {
    throw ConfigError("give --file for a token or --tls-dir for certificates, not both");
  }
  if (flags.tls_dir.empty() && (!flags.job.empty() || flags.servers + flags.workers > 0)) {
    throw ConfigError("--job, --servers and --workers are for certificates: give --tls-dir DIR");
  }
  if (!flags.tls_dir.empty()) return write_certificates(flags);
  if (!flags.file.empty()) return write_token(flags.file);
  print_token();
}

}  // namespace

void add_token(CLI::App& program, Invocation&) {
  constexpr int kMaxProcesses = 10000;
  CLI::App* command =
      program.add_subcommand("token", "A new secret, or certificates, for a job on several hosts");
  auto flags = std::make_shared<TokenFlags>();
  command->add_option("--file", flags->file, "write the token here, readable by you alone");
  command->add_option("--tls-dir", flags->tls_dir,
                      "make certificates here instead, a folder for each process");
  command->add_option("--job", flags->job, "of the certificates: the name given to --job");
  command->add_option("--servers", flags->servers, "of the certificates: how many servers")
      ->check(CLI::Range(0, kMaxProcesses));
  command->add_option("--workers", flags->workers, "of the certificates: how many workers")
      ->check(CLI::Range(0, kMaxProcesses));
  command->add_option("--days", flags->days, "of the certificates: how long they are valid")
      ->check(CLI::Range(1, 3650))
      ->capture_default_str();
  command->callback([flags] { run_token(*flags); });
}

}  // namespace cohort::apps
