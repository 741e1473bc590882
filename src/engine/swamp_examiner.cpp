#include "engine/swamp_examiner.h"

#include <ATen/Parallel.h>

#include <numeric>
#include <optional>

#include "core/error.h"
#include "core/random.h"
#include "engine/assemble.h"
#include "engine/checkpointing.h"
#include "engine/device.h"
#include "engine/prepared_set.h"
#include "methods/flat_model.h"
#include "methods/swamp_method.h"

namespace cohort::engine {
namespace {

// Batches of the validation set stay in the cache between two layers.
constexpr std::int64_t kBatch = 100;

EvaluatorOptions options_for(const config::RunConfig& config, const models::Model& model) {
  EvaluatorOptions options = evaluator_options(config, model, parse_device(config.device));
  if (options.placement.device.is_cpu()) options.batch = std::min(options.batch, kBatch);
  options.loader_threads = 0;
  return options;
}

}  // namespace

struct SwampExaminer::Parts {
  Parts(const config::RunConfig& settings, const data::Dataset& samples)
      : config(settings),
        train(samples),
        model(build_model(config, train, InitialWeights::kLater)),
        replica(*model, replica_options(config, *model, parse_device(config.device))),
        options(options_for(config, *model)) {
    at::set_num_threads(1);  // the workers have the others
  }

  // The validation set, read once.
  const PreparedSet& fixed() {
    if (!validation) {
      std::vector<std::int64_t> samples(static_cast<std::size_t>(validation_size(config, train)));
      std::iota(samples.begin(), samples.end(),
                train.size() - static_cast<std::int64_t>(samples.size()));
      validation.emplace(train, samples, options);
    }
    return *validation;
  }

  PreparedSet drawn(std::uint64_t draw) const {
    RandomStream random(static_cast<Seed>(config.seed), "swamp check", {draw});
    const std::int64_t most = methods::swamp_settings().read(config.own).check_samples;
    std::vector<std::int64_t> samples(static_cast<std::size_t>(std::min(most, train.size())));
    for (std::int64_t& sample : samples) {
      sample = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(train.size())));
    }
    return {train, samples, options};
  }

  config::RunConfig config;
  const data::Dataset& train;
  std::unique_ptr<models::Model> model;
  methods::Replica replica;
  EvaluatorOptions options;
  std::optional<PreparedSet> validation;
};

SwampExaminer::SwampExaminer(const config::RunConfig& config, const data::Dataset& train)
    : parts_(std::make_unique<Parts>(config, train)) {}

SwampExaminer::~SwampExaminer() = default;

std::vector<float> SwampExaminer::losses(std::span<const float> model, std::uint64_t draw) {
  methods::copy_model_from(model, parts_->replica);
  if (draw == 0) return losses_of(*parts_->model, parts_->fixed());
  return losses_of(*parts_->model, parts_->drawn(draw));
}

storage::DumpContent SwampExaminer::named(std::span<const float> model) {
  methods::copy_model_from(model, parts_->replica);
  return copy_model(parts_->replica);
}

}  // namespace cohort::engine
