#include "runs/job_facts.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "engine/assemble.h"
#include "runs/agreement.h"

namespace cohort::runs {
namespace {

class AgreementAtStart final : public JobAgreement {
 public:
  explicit AgreementAtStart(launch::Job& job)
      : processes_(job.between_processes()), shape_(job.shape()) {}

  void agree_on_settings(config::RunConfig& config) override {
    facts_.settings = settings_text(config);
    require_same_settings(processes_, config);
  }

  void agree_on_data(const data::DataSplits& data) override {
    require_same_data(processes_, data);
    if (shape_.outlives_losses) facts_.data = data_facts(data);
  }

  void agree_on_stepsize(config::RunConfig& config, const models::Model& model) override {
    if (shape_.process == 0)
      engine::choose_stepsize(config, shape_.size, engine::largest_tensor(model));
    config.consensus_stepsize = from_first_process(processes_, config.consensus_stepsize);
    facts_.consensus_stepsize = config.consensus_stepsize;
  }

  void agree_on_run(const JobFacts& of_first) override {
    facts_.resume = from_first_process(processes_, of_first.resume);
    if (!shape_.outlives_losses) return;
    facts_.id = from_first_process(processes_, of_first.id);
    facts_.run = from_first_process(processes_, of_first.run);
  }

 private:
  collectives::Collectives& processes_;
  launch::JobShape shape_;
};

class AgreementOnReturn final : public JobAgreement {
 public:
  explicit AgreementOnReturn(const launch::Job& job) : process_(job.shape().process) {
    try {
      const auto told = nlohmann::json::parse(job.rejoin_info());
      facts_ = {told.at("settings"), told.at("data"), told.at("consensus-stepsize"),
                told.at("resume"),   told.at("run"),  told.at("id")};
    } catch (const nlohmann::json::exception& error) {
      throw PeerError(std::string("the leader told something else than the run's settings: ") +
                      error.what());
    }
    if (std::filesystem::path(facts_.run).filename() != facts_.run) {
      throw PeerError("the leader told a name of the run that is no folder's: " + facts_.run);
    }
  }

  void agree_on_settings(config::RunConfig& config) override {
    require_same_settings(facts_.settings, process_, config);
  }
  void agree_on_data(const data::DataSplits& data) override {
    require_same_data(facts_.data, process_, data);
  }
  void agree_on_stepsize(config::RunConfig& config, const models::Model&) override {
    config.consensus_stepsize = facts_.consensus_stepsize;
  }
  void agree_on_run(const JobFacts&) override {}

 private:
  int process_;
};

}  // namespace

std::unique_ptr<JobAgreement> agree_at_start(launch::Job& job) {
  return std::make_unique<AgreementAtStart>(job);
}

std::unique_ptr<JobAgreement> agree_on_return(const launch::Job& job) {
  return std::make_unique<AgreementOnReturn>(job);
}

std::string to_text(const JobFacts& facts) {
  return nlohmann::json{{"settings", facts.settings},
                        {"data", facts.data},
                        {"consensus-stepsize", facts.consensus_stepsize},
                        {"resume", facts.resume},
                        {"run", facts.run},
                        {"id", facts.id}}
      .dump();
}

}  // namespace cohort::runs
