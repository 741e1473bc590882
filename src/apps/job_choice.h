// Which job a process is part of, and whether a method can work in it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "launch/job.h"

namespace cohort {

// Throws ConfigError for names that only the registries know, before anything is started.
void check_names(const RunConfig& config);

// As in TrainRequest.
struct JobPlace {
  std::vector<std::string> addresses = {};
  int processes = 0;
  int process = 0;
  bool rejoin = false;
  std::vector<std::string> rejoin_at = {};
};

// This process's part of the job that the configuration asks for; writes the engine and the number
// of workers that were left to us into it. Throws ConfigError when it cannot be had so.
std::unique_ptr<Job> join_job(RunConfig& config, const JobPlace& place = {});

// How many parameter servers this process is to start; nothing when --servers says where they are.
// Throws ConfigError when it says neither.
std::optional<int> servers_to_start(const RunConfig& config);

// This worker's part of a job whose workers know only the servers; fills in its rank. `launched`:
// by `cohort launch`, all on this host.
std::unique_ptr<Job> join_servers(RunConfig& config, bool launched);

// Throws ConfigError when the method cannot work in such a job. `resumed`: the run that goes on, or
// "".
void check_method_suits(const RunConfig& config, const Job& job, const std::string& resumed = "");

}  // namespace cohort
