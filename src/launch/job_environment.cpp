#include "launch/job_environment.h"

#include <sys/utsname.h>

#include <fstream>
#include <optional>
#include <thread>

#include "core/error.h"
#include "launch/environment.h"
#include "launch/runtime_folder.h"

namespace cohort::launch {
namespace {

std::optional<Place> own_place() { return detect_place(own_variable); }

std::string text_of(const char* name) {
  const char* value = own_variable(name);
  return value == nullptr ? "" : value;
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

}  // namespace

int launched_processes() {
  const std::optional<Place> place = own_place();
  return place ? place->size : 1;
}

std::string default_engine() {
  const std::optional<Place> place = own_place();
  if (!place || place->size == 1) return "threads";
  return place->source == "torchrun" ? "tcp" : "mpi";
}

std::string find_job_name(const std::string& job) {
  if (!job.empty()) return job;
  const std::string name = text_of("COHORT_JOB");
  return name.empty() ? "cohort" : name;
}

bool is_job_named(const std::string& job) { return !job.empty() || !text_of("COHORT_JOB").empty(); }

network::Credentials find_credentials(const std::string& token_file, const std::string& tls_dir,
                                      bool insecure) {
  network::Credentials credentials;
  credentials.insecure = insecure;
  if (!token_file.empty()) {
    credentials.token = network::read_token(token_file);
  } else if (const char* token = own_variable("COHORT_TOKEN"); token != nullptr) {
    if (!network::is_token(token)) {
      throw ConfigError("COHORT_TOKEN is no token; `cohort token` prints one");
    }
    credentials.token = token;
  }
  credentials.tls_dir = tls_dir.empty() ? text_of("COHORT_TLS_DIR") : tls_dir;
  return credentials;
}

std::string runtime_folder() { return private_folder(own_variable, fallback_folder()); }

HostDescription describe_this_host() {
  utsname system{};
  ::uname(&system);
  return {system.nodename, std::string(system.sysname) + " " + system.release, cpu_name(),
          std::thread::hardware_concurrency(), text_of("OPENBLAS_CORETYPE")};
}

}  // namespace cohort::launch
