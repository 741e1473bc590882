// What all processes of a job have in common, and how a process comes to know it: those that start
// together agree, one that was lost and comes back is told.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "config/run_config.h"
#include "data/registry.h"
#include "engine/worker.h"
#include "launch/job.h"
#include "models/model.h"

namespace cohort::runs {

struct JobFacts {
  std::string settings;  // settings_text()
  std::string data;      // data_facts()
  std::string consensus_stepsize;
  std::string resume;  // resume_text(): where the run goes on; empty: from its beginning
  std::string run;     // the name of its folder
  std::string id;      // in its run.json
};

// Called in this order, by all processes of a job together.
class JobAgreement {
 public:
  virtual ~JobAgreement() = default;

  // Throws ConfigError naming the process and what differs.
  virtual void agree_on_settings(config::RunConfig& config) = 0;
  virtual void agree_on_data(const data::DataSplits& data) = 0;
  // Found by one process for all: another host's arithmetic may differ in the last digit.
  virtual void agree_on_stepsize(config::RunConfig& config, const models::Model& model) = 0;
  // Of the process that keeps the run: `resume`, `run` and `id` as in JobFacts.
  virtual void agree_on_run(const JobFacts& of_first) = 0;

  const JobFacts& facts() const { return facts_; }

 protected:
  JobFacts facts_;
};

std::unique_ptr<JobAgreement> agree_at_start(launch::Job& job);
// Throws PeerError when what the leader told cannot be read.
std::unique_ptr<JobAgreement> agree_on_return(const launch::Job& job);

// For Job::set_rejoin_info().
std::string to_text(const JobFacts& facts);

}  // namespace cohort::runs
