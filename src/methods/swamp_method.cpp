#include "methods/swamp_method.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/random.h"
#include "methods/flat_model.h"
#include "methods/server_log.h"
#include "swamp/swamp_client.h"

namespace cohort::methods {
namespace {

constexpr std::chrono::seconds kSwampLeaveTimeout{5};

class Swamp final : public UpdateMethod {
 public:
  explicit Swamp(const MethodOptions& options)
      : options_(options), settings_(swamp_settings().read(options.own)) {}

  ~Swamp() override {
    if (client_) client_->leave(deadline_in(kSwampLeaveTimeout));
  }

  void start(Replica& replica) override {
    if (options_.servers == nullptr) {
      COHORT_CHECK(options_.size == 1, "several workers have a server");
      return;
    }
    const ServerAccess& access = *options_.servers;
    COHORT_CHECK(access.servers.size() == 1, "there is one best-model server");
    swamp::SwampClientOptions client;
    client.server = access.servers.front();
    client.job = access.job;
    client.worker = options_.rank;
    client.credentials = access.credentials;
    client.runtime_folder = access.runtime_folder;
    client.spec = access.swamp;
    client.spec.values = flat_size(replica);
    client.patience = options_.patience;
    client.note = access.note;
    client.links.meter = std::make_shared<TrafficMeter>();
    if (options_.server_log != nullptr) options_.server_log->set_meter(client.links.meter);
    client.stop = access.stop;
    trusts_verdicts_ = client.spec.policy == "validated";
    values_.resize(static_cast<std::size_t>(client.spec.values));
    copy_model_to(values_, replica);
    client_ = std::make_unique<swamp::SwampClient>(client);
    options_.doing(Phase::kExchanging);
    take(client_->start(values_, deadline()));
    copy_model_from(values_, replica);
  }

  StepKind before_step(Replica&) override {
    return client_ && trained_ >= settings_.free_trial_steps ? StepKind::kProbe : StepKind::kTrain;
  }

  void update(Replica& replica, const StepInfo& info) override {
    if (!client_ || trained_ < settings_.free_trial_steps) {
      replica.apply_gradients(info.lr);
      ++trained_;
      changed_ = true;
      return;
    }
    trained_ = 0;
    hear_verdicts();
    claim_ = info.loss;
    if (info.loss < score_) {
      score_ = info.loss;
      offer(replica);
    } else {
      pull_perhaps(replica, info.step);
    }
    note_version();
  }

  void materialize(Replica&) override {}

  void finish(Replica& replica, Ending ending) override {
    if (!client_ || ending == Ending::kInterrupted) return;
    options_.doing(Phase::kExchanging);
    if (trusts_verdicts_ && changed_) {
      // Claims only say whom to look at first, and one that has never probed has none.
      if (!std::isfinite(claim_)) claim_ = std::numeric_limits<float>::max();
      offer(replica);
    }
    if (options_.rank == 0 && options_.servers->wait_for_others) {
      try {
        if (const auto best = client_->final_best(values_)) {
          take(*best);
          copy_model_from(values_, replica);
        }
      } catch (const InterruptedError&) {  // this worker's own model is saved
      }
    } else {
      client_->leave(deadline());
    }
    note_version();
  }

  void visit_state(StateVisitor&) override {}

 private:
  Deadline deadline() const { return deadline_in(options_.patience); }

  void take(const swamp::PulledModel& pulled) {
    version_ = pulled.version;
    score_ = pulled.version == 0 ? std::numeric_limits<double>::infinity() : pulled.score;
  }

  void offer(const Replica& replica) {
    copy_model_to(values_, replica);
    offered_ = client_->offer(values_, claim_, deadline());
    changed_ = false;
  }

  void hear_verdicts() {
    while (const auto verdict = client_->take_verdict()) {
      if (verdict->kind == swamp::VerdictKind::kAccepted)
        version_ = std::max(version_, verdict->version);
      const bool newest = verdict->sequence == offered_;
      if (trusts_verdicts_ && newest && std::isfinite(verdict->loss)) score_ = verdict->loss;
      if (verdict->kind == swamp::VerdictKind::kRefused) note_refusal(verdict->reason);
    }
  }

  // Once: the server may say the same of every model.
  void note_refusal(const std::string& reason) {
    if (!std::exchange(refusal_noted_, true) && options_.note) {
      options_.note("warning: the server refused a model of worker " +
                    std::to_string(options_.rank) + ": " + reason);
    }
  }

  void pull_perhaps(Replica& replica, Step step) {
    RandomStream random(
        derive_seed(options_.seed, "swamp",
                    {static_cast<std::uint64_t>(options_.rank), static_cast<std::uint64_t>(step)}));
    const bool pulls = random.uniform() < settings_.pull_probability;
    const bool crosses = random.uniform() < settings_.crossover_probability;
    if (!pulls) return;
    options_.doing(Phase::kExchanging);
    const auto pulled = client_->pull(values_, version_, deadline());
    if (!pulled) return;
    if (crosses) {
      own_.resize(values_.size());
      copy_model_to(own_, replica);
      for (std::size_t i = 0; i < own_.size(); ++i) values_[i] = 0.5F * (values_[i] + own_[i]);
    }
    take(*pulled);
    changed_ = crosses;
    copy_model_from(values_, replica);
  }

  void note_version() const {
    if (options_.server_log != nullptr) options_.server_log->set_updates(version_);
  }

  MethodOptions options_;
  const SwampSettings settings_;
  bool trusts_verdicts_ = false;
  bool refusal_noted_ = false;
  std::int64_t trained_ = 0;  // batches since the last probe
  bool changed_ = false;      // the model is another than the one offered or pulled last
  double score_ = std::numeric_limits<double>::infinity();
  double claim_ = std::numeric_limits<double>::quiet_NaN();  // the last probe's loss
  std::uint64_t version_ = 0;                                // that this worker has
  std::uint64_t offered_ = 0;                                // number of the last offer
  std::vector<float> values_;
  std::vector<float> own_;
  std::unique_ptr<swamp::SwampClient> client_;
};

}  // namespace

std::unique_ptr<UpdateMethod> make_swamp(const MethodOptions& options) {
  if (options.servers == nullptr && options.size > 1 && options.control == nullptr) {
    throw ConfigError("--method swamp with several workers needs a server: give --servers");
  }
  return std::make_unique<Swamp>(options);
}

}  // namespace cohort::methods
