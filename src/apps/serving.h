// A parameter server from its settings to its end, behind `cohort serve-parameters` and the
// dialects' server roles.
#pragma once

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "dialects/flag_names.h"
#include "network/address.h"
#include "network/credentials.h"
#include "network/identity.h"

namespace cohort::apps {

struct ServeRequest {
  network::Address listen;
  int index = 0;               // this server's number, from 0
  int workers = 0;             // to expect; 0: as many as the first one says
  std::string job = "cohort";  // a name that all processes of the job know
  network::Credentials credentials = {};
  std::filesystem::path state_dir = {};  // for snapshots; empty: what is lost in a crash is lost
  std::chrono::milliseconds idle_exit = std::chrono::minutes(10);  // without any worker
  // Settings that this server was told, as a JSON object by their names; checked where workers
  // join.
  nlohmann::json told = nlohmann::json::object();
  dialects::FlagNames flag_names = {};  // of a dialect, for what is wrong with a worker's settings
  bool json = false;                    // the summary on standard output
  bool quiet = false;                   // nothing but warnings
};

// Serves until all workers are done, or none is there for idle_exit, or a signal comes. Returns
// the exit status; throws what main() reports.
int serve_parameters(const ServeRequest& request);

// `cohort serve-parameters` with the flags that say the same; secrets as the settings name them.
std::vector<std::string> serve_command(const ServeRequest& request,
                                       const config::RunConfig& config);

}  // namespace cohort::apps
