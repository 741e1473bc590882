#include <memory>

#include "apps/command.h"
#include "apps/serving.h"
#include "launch/job_environment.h"

namespace cohort::apps {
namespace {

constexpr const char* kServeParametersExample =
    R"(Example:

    cohort serve-parameters --listen 127.0.0.1:7000 &
    cohort train --method parameter-server --servers 127.0.0.1:7000 --workers 2 --rank 0 &
    cohort train --method parameter-server --servers 127.0.0.1:7000 --workers 2 --rank 1

The workers bring the model and all settings. The server ends when they are done.)";

}  // namespace

void add_serve_parameters(CLI::App& program, Invocation& invocation) {
  CLI::App* command =
      program.add_subcommand("serve-parameters", "Be a parameter server for workers elsewhere");
  command->footer(kServeParametersExample);
  struct Flags {
    ServeRequest request;
    std::string listen = "127.0.0.1:0";
    std::string job;
    std::string token_file;
    std::string tls_dir;
    std::string state_dir;
    bool insecure = false;
    double idle_exit = 600;
  };
  auto flags = std::make_shared<Flags>();
  command->add_option("--listen", flags->listen, "host:port to listen at; port 0: any free one")
      ->capture_default_str();
  command->add_option("--index", flags->request.index, "this server's number, from 0")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command->add_option("--workers", flags->request.workers, "to expect; 0: as the first one says")
      ->check(CLI::Range(0, 65536))
      ->capture_default_str();
  command->add_option(
      "--job", flags->job,
      "name that all processes of the job know; empty: $COHORT_JOB, else one for all");
  command->add_option("--state-dir", flags->state_dir,
                      "folder for snapshots: a server started again with it goes on");
  command->add_option("--idle-exit", flags->idle_exit, "seconds without any worker until it ends")
      ->check(CLI::Range(0.1, 1e9))
      ->capture_default_str();
  command->add_option("--token-file", flags->token_file,
                      "the job's secret, made by `cohort token`; or set COHORT_TOKEN");
  command->add_option("--tls-dir", flags->tls_dir,
                      "authority.pem, certificate.pem and key.pem of this server");
  command->add_flag("--insecure", flags->insecure,
                    "no encryption, also across the network: for private networks alone");
  command->add_flag("--json", flags->request.json, "the summary as JSON on standard output");
  command->add_flag("--quiet", flags->request.quiet, "nothing but where it listens");
  command->callback([flags, &invocation] {
    ServeRequest& request = flags->request;
    request.listen = network::parse_address(flags->listen);
    request.job = launch::find_job_name(flags->job);
    request.credentials =
        launch::find_credentials(flags->token_file, flags->tls_dir, flags->insecure);
    request.state_dir = flags->state_dir;
    request.idle_exit =
        std::chrono::milliseconds(static_cast<std::int64_t>(flags->idle_exit * 1e3));
    invocation.exit_status = serve_parameters(request);
  });
}

}  // namespace cohort::apps
