// What one schedule is made of, drawn from its seed. Many seeds lack whole kinds of faults: a
// mistake that shows only in peace, or only under one fault, is not drowned by the others.
#pragma once

#include <array>
#include <string>

#include "core/types.h"
#include "server/job_spec.h"
#include "simulation/virtual_time.h"

namespace cohort::server::simulation {

enum Fault : std::uint32_t {
  kBreak,        // a connection ends; what was on its way arrives in part, late, or not at all
  kClog,         // nothing gets through, in one direction or both, for a while
  kCrash,        // a worker's process dies; a new one starts later
  kPause,        // a worker's process is stopped for a while
  kReplace,      // likewise, and another process is started in its place meanwhile
  kDie,          // a worker's process dies and nobody starts another
  kServerCrash,  // volatile state is lost; a snapshot being written may be kept or not
  kServerPause,
  kRestart,  // every process ends, and the job is started again from worker 0's checkpoint
  kFaultKinds,
};
const char* to_text(Fault fault);

struct Swarm {
  ServerMode mode = ServerMode::kSync;
  int workers = 1;
  int staleness = 0;
  int backup_workers = 0;
  int total_updates = 0;
  bool keeps_state = false;
  int steps = 6;  // of every worker

  std::array<cohort::simulation::Time, kFaultKinds> every =
      {};                                // mean time between two faults of a kind; 0: never
  cohort::simulation::Time calm_at = 0;  // no fault from here on
  cohort::simulation::Time evict_after = 2500 * cohort::simulation::kMillisecond;
  cohort::simulation::Time evict_unconnected = 500 * cohort::simulation::kMillisecond;
  cohort::simulation::Time silence =
      3 * cohort::simulation::kSecond;  // after which an end of a connection gives it up
  cohort::simulation::Time snapshot_every = cohort::simulation::kSecond;
  cohort::simulation::Time persist_takes = 50 * cohort::simulation::kMillisecond;
  double persist_fails = 0;
  double snapshot_survives = 0.5;  // written, though its server died before it knew
  cohort::simulation::Time delay = cohort::simulation::kMillisecond;  // mean, of a frame
  double split = 0;      // frames that arrive in two pieces
  double unnoticed = 0;  // ends of connections of which the other end hears nothing
  double lingering = 0;  // broken connections that still deliver, seconds later
  cohort::simulation::Time compute = 100 * cohort::simulation::kMillisecond;
  double slowness = 1;  // of the last worker
  double poison = 0;    // pushes that hold a NaN
  std::size_t window_bytes = 1 << 20;
  // How many workers, from 0 on, take the model when all others are done. The first look may be
  // asked for with the push that is thought to be the last.
  int last_looks = 0;
  double early_look = 0;
  double congested = 0;         // times that a connection takes no more values for now
  std::size_t piece = 1 << 15;  // elements of values in a frame
  double ahead = 0;             // pushes whose values are asked for before their end
  std::size_t speculation_stretch = 1 << 15;
  std::int64_t min_part = 16384;  // of a push: small, and it comes in several frames

  std::string text() const;
};

Swarm draw_swarm(Seed seed);

}  // namespace cohort::server::simulation
