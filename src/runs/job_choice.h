// Which job a process is part of, and whether a method can work in it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.h"

namespace cohort::launch {
class Job;  // launch/job.h
}

namespace cohort::runs {

// Throws ConfigError for names that only the registries know, before anything is started.
void check_names(const config::RunConfig& config);

// Of a process that no launcher places. --engine tcp: where all processes listen, host:port each,
// or how many there are (they meet at --meet then), and which of them this one is.
struct JobPlace {
  std::vector<std::string> addresses = {};
  int processes = 0;
  int process = 0;
  bool rejoin = false;                      // it was lost, and the others go on,
  std::vector<std::string> rejoin_at = {};  // perhaps at one of these, or else where they met
};

// Gets lines for people, from any thread.
using Note = std::function<void(const std::string&)>;

// This process's part of the job that the configuration asks for; writes the engine and the number
// of workers that were left to us into it. Throws ConfigError when it cannot be had so.
std::unique_ptr<launch::Job> join_job(config::RunConfig& config, const JobPlace& place,
                                      const Note& note);

// How many parameter servers this process is to start; nothing when --servers says where they are.
// Throws ConfigError when it says neither.
std::optional<int> servers_to_start(const config::RunConfig& config);

// This worker's part of a job whose workers know only the servers; fills in its rank. `launched`:
// by `cohort launch`, all on this host.
std::unique_ptr<launch::Job> join_servers(config::RunConfig& config, bool launched,
                                          const Note& note);

// Throws ConfigError when the method cannot work in such a job. `resumed`: the run that goes on, or
// "".
void check_method_suits(const config::RunConfig& config, const launch::Job& job,
                        const std::string& resumed = "");

}  // namespace cohort::runs
