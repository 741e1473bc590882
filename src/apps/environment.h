// What the program takes from the machine it runs on. Nothing below apps/ reads the environment.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "config/run_config.h"
#include "engine/assemble.h"

namespace cohort {

// $COHORT_DATA_DIR, the user's cache, /usr/share/datasets. Throws ConfigError when the variable
// names no folder: what the user names is never passed over in silence.
SearchPath data_search_path();

// For a dialect's flag that the user did not give: the folder that is its default if there is such
// a folder, else empty, which means data_search_path().
std::string default_data_dir(const std::string& folder);

// Gives libtorch the threads that the configuration asks for, and writes a choice left to us into
// it, so that run.json repeats it. Workers that share this host share its cores.
void set_compute_threads(RunConfig& config, const Model& model, int workers_here = 1);

// How many processes a launcher (mpirun, srun, torchrun) started together with this one; 1 when
// none did.
int launched_processes();

// The engine when the user left it to us: for a process that a launcher started among others mpi,
// for torchrun processes on one host and tcp on several; else threads.
std::string default_engine();

// Host, CPU, cores, versions: what a reader of run.json needs to place its figures.
nlohmann::json describe_host();

// What `cohort launch --servers` tells a worker: COHORT_SERVERS, COHORT_RANK, COHORT_WORKERS.
// Writes them into the configuration; false when there are none.
bool take_place_from_launcher(RunConfig& config);

// True after Ctrl-C or SIGTERM; a second one ends the program at once.
const std::atomic<bool>& stop_requested();
void watch_signals();
// As if somebody had pressed Ctrl-C.
void request_stop();
// That a signal was heard, to the error stream. Can be called by a signal handler.
void say_stopping();

bool is_terminal(std::FILE* stream);

}  // namespace cohort
