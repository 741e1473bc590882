// A job of servers and workers, all on this host.
//
// Every process gets the job's name and certificates of an authority made for this job alone
// (COHORT_JOB, COHORT_TLS_DIR); workers also their place (COHORT_RANK, COHORT_WORKERS) and where
// the servers listen (COHORT_SERVERS). Ports are free ones of loopback.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launch/local_processes.h"
#include "launch/local_processes_job.h"

namespace cohort::launch {

struct LocalServersRequest {
  int servers = 1;
  int workers = 1;
  std::filesystem::path program = {};
  std::vector<std::string> arguments = {};  // of a worker: "train", ...
  std::filesystem::path state_dir = {};     // where servers keep snapshots; empty: till the end
  // What a server does; it is also told where to listen, its number, the number of workers and
  // where to keep snapshots.
  std::vector<std::string> server_arguments = {"serve-parameters"};
  int restarts = kRestarts;  // of each server
};

// The processes, servers first. Makes nothing: the authority's folder is `folder`/tls.
struct LocalServersJob {
  std::string job;
  std::vector<LocalProcess> processes;
};
LocalServersJob local_servers_job(const LocalServersRequest& request,
                                  const std::filesystem::path& folder);

// Makes the authority, starts all and runs them to their end.
//   A server that a signal ended is started again, so often as asked for; one that ends otherwise
//   while there are workers ends the job. A worker that fails does not end the others; the status
//   is 1 then. Servers end by themselves after the workers; those that have not 30 s later are told
//   to.
// Returns the exit status of the whole: 0, 1, 2 when all workers found their usage bad, 130 when
// the job was interrupted.
int run_local_servers(const LocalServersRequest& request, const LocalControl& control);

}  // namespace cohort::launch
