// One worker of a run with everything it trains with, and the threads that workers of one process
// run on.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/membership.h"
#include "config/run_config.h"
#include "data/registry.h"
#include "data/sample_order.h"
#include "engine/assemble.h"
#include "engine/trainer.h"
#include "methods/arrival_log.h"
#include "methods/method_traits.h"

namespace cohort::engine {

// Where a run that goes on stands.
struct ResumePoint {
  data::OrderStart start;  // of the sample order
  Step step = 0;
  std::string engine;  // the checkpoint's "engine" member, as JSON
  std::string source;  // names the checkpoint in messages
};

// What the workers of a process have in common besides settings and data.
struct WorkerSetup {
  // NOLINTNEXTLINE(google-explicit-constructor): most have a resume point, or nothing
  WorkerSetup(const ResumePoint* point = nullptr, const methods::ServerAccess* access = nullptr)
      : resume(point), servers(access) {}

  const ResumePoint* resume;               // null: the run begins
  const methods::ServerAccess* servers;    // where they are; null for methods without
  bool enters = false;                     // the others are under way
  const ResidentData* resident = nullptr;  // of the GPUs that compute; run_workers() brings it
  PauseClock* pauses = nullptr;  // of the process; null: no worker waits for another's evaluation
  std::function<void(const std::string&)> note = nullptr;  // a line for people, from any thread
  // What to tell people where an exception says that memory could not be had; nothing of others.
  // From any worker's thread.
  std::function<std::optional<std::string>(const std::exception&)> out_of_memory = nullptr;
};

class Worker {
 public:
  // `member`, `data` and what `setup` names outlive the worker. The first rank draws the initial
  // weights, or takes them from --init unless a checkpoint will bring them; the others get theirs
  // when the method starts.
  Worker(const config::RunConfig& config, const data::DataSplits& data,
         collectives::Membership& member, const WorkerSetup& setup = {});
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  const collectives::Membership& member() const { return member_; }
  bool is_first() const { return member_.rank == 0; }
  models::Model& model() { return *model_; }
  methods::Replica& replica() { return *replica_; }
  methods::UpdateMethod& method() { return *method_; }
  const schedules::LearningRate& schedule() const { return *schedule_; }
  const data::SampleOrder& order() const { return order_; }
  const TrainerOptions& options() const { return options_; }
  methods::ArrivalLog& arrivals() { return arrivals_; }
  WorkerGroup group();
  // Between this worker and all others, or its servers, so far; and of that all but messages
  // between two ranks.
  Traffic traffic() const;
  Traffic traffic_without_messages() const;
  // What --init left at its random start or had too much: lines for the user.
  const std::vector<std::string>& notes() const { return notes_; }

  // What a Trainer needs of it. The caller adds where records, progress and checkpoints go.
  TrainerParts parts(const data::DataSplits& data, metrics::MetricsSink& metrics,
                     Progress& progress);

 private:
  collectives::Membership& member_;
  std::chrono::nanoseconds patience_;
  const methods::MethodTraits& traits_;
  methods::ArrivalLog arrivals_;
  std::unique_ptr<methods::ServerLog> server_log_;
  PauseClock* pauses_ = nullptr;
  std::unique_ptr<const methods::ServerAccess> servers_;  // null for methods without
  std::vector<std::string> notes_;
  std::unique_ptr<models::Model> model_;
  data::SampleOrder order_;
  TrainerOptions options_;
  std::unique_ptr<schedules::LearningRate> schedule_;
  std::unique_ptr<methods::Replica> replica_;
  std::unique_ptr<methods::UpdateMethod> method_;
};

// Whatever would keep a worker from being built with this configuration is thrown here, without
// building one: before anything is written. `local`: the ranks that live in this process.
void check_workers(const config::RunConfig& config, const data::DataSplits& data, int workers,
                   Range local);

// Builds a worker for each member and runs body(worker) for it on a thread of its own, with
// config.threads compute threads; returns when all have ended. A body that throws leaves its group,
// saying what it was doing, so that the others end too; then the first cause is thrown here, never
// just its echo, and of several workers with the rank and its step.
//
// A worker that hangs in its own code cannot be ended. When the others have failed and it has not
// followed within some seconds, `stuck` is called with who it is and what it was doing; it should
// end the process, since that thread still uses what is given here. Without `stuck` the wait goes
// on.
void run_workers(const config::RunConfig& config, const data::DataSplits& data,
                 std::vector<collectives::Membership>& members, const WorkerSetup& setup,
                 const std::function<void(Worker&)>& body,
                 const std::function<void(const std::string&)>& stuck = {});

}  // namespace cohort::engine
