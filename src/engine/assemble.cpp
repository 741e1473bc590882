#include "engine/assemble.h"

#include <charconv>

#include "core/error.h"
#include "core/random.h"
#include "core/text.h"
#include "data/partition.h"
#include "engine/device.h"
#include "engine/generator.h"

namespace cohort {
namespace {

SampleShape parse_shape(const std::string& text) {
  const std::vector<std::string> parts = split(text, 'x');
  SampleShape shape;
  std::int64_t* const sizes[] = {&shape.channels, &shape.height, &shape.width};
  bool good = parts.size() == 3;
  for (std::size_t i = 0; good && i < 3; ++i) {
    const char* end = parts[i].data() + parts[i].size();
    const auto parsed = std::from_chars(parts[i].data(), end, *sizes[i]);
    good = parsed.ec == std::errc{} && parsed.ptr == end && *sizes[i] >= 1 && *sizes[i] <= 4096;
  }
  if (!good) {
    throw ConfigError(
        "--synthetic-shape must be CHANNELSxHEIGHTxWIDTH, each from 1 to 4096, e.g. "
        "3x32x32; got '" +
        text + "'");
  }
  return shape;
}

std::vector<std::int64_t> own_samples(const RunConfig& config, const Dataset& train) {
  const PartitionKind kind = partition_kind(config.partition);
  if (kind == PartitionKind::kNone) return {};
  std::vector<std::int64_t> labels(static_cast<std::size_t>(train.size()));
  for (std::int64_t i = 0; i < train.size(); ++i) {
    labels[static_cast<std::size_t>(i)] = train.label(i);
  }
  auto parts = partition(kind, labels, static_cast<int>(config.shard_count), config.partition_alpha,
                         static_cast<Seed>(config.seed));
  return std::move(parts[static_cast<std::size_t>(config.shard_index)]);
}

}  // namespace

std::unique_ptr<DataSplits> open_data(const RunConfig& config, const SearchPath& search) {
  DataRequest request;
  request.name = config.data;
  if (!config.data_dir.empty()) request.search.emplace_back(config.data_dir);
  request.search.insert(request.search.end(), search.begin(), search.end());
  request.train_size = config.train_size;
  request.test_size = config.test_size;
  request.augment = config.augment;
  request.normalize = config.normalize;
  request.image_size = config.image_size;
  request.synthetic_shape = parse_shape(config.synthetic_shape);
  request.synthetic_classes = config.synthetic_classes;
  request.seed = static_cast<Seed>(config.seed);
  return load_data(request);
}

std::unique_ptr<Model> build_model(const RunConfig& config, const Dataset& data) {
  const SampleShape shape = data.shape();
  const ModelOptions options{.channels = shape.channels,
                             .height = shape.height,
                             .width = shape.width,
                             .classes = static_cast<std::int64_t>(data.class_names().size()),
                             .dropout = config.dropout,
                             .depth = config.depth,
                             .widen = config.widen,
                             .growth = config.growth};
  return models().make(config.model, options,
                       make_generator(derive_seed(static_cast<Seed>(config.seed), "initialize")));
}

std::int64_t choose_threads(const RunConfig& config, const Model& model, std::int64_t cores) {
  if (config.threads > 0) return config.threads;
  // Of a forward and backward pass at least; convolutions use each weight more than once. Measured:
  // mlp-100 at batch 100 (4.8e7) is a quarter faster with one thread, mnistnet at batch 64 (1.7e8)
  // with two.
  constexpr double kWorthASecondThread = 1e8;
  const double operations =
      6.0 * static_cast<double>(config.batch) * static_cast<double>(model.store().numel());
  return operations < kWorthASecondThread ? 1 : std::max<std::int64_t>(1, cores);
}

bool wants_channels_last(const RunConfig& config, const Model& model) {
  if (config.memory_format != "auto") return config.memory_format == "channels-last";
  // Convolutions run 1.3 to 1.6 times faster that way; a network without any has no use for it.
  for (const Parameter& parameter : model.store().parameters()) {
    if (parameter.value.dim() == 4) return true;
  }
  return false;
}

ReplicaOptions replica_options(const RunConfig& config, const Model& model) {
  return {.optimizer = config.optimizer,
          .optimizer_options = {.momentum = config.momentum,
                                .nesterov = config.nesterov,
                                .beta1 = config.beta1,
                                .beta2 = config.beta2,
                                .epsilon = config.epsilon},
          .device = parse_device(config.device),
          .channels_last = wants_channels_last(config, model),
          .weight_decay = config.weight_decay,
          .decay_normalization = !config.no_norm_decay,
          .clip_norm = config.clip_norm};
}

SampleOrder sample_order(const RunConfig& config, const Dataset& train) {
  return SampleOrder({.samples = train.size(),
                      .partition = own_samples(config, train),
                      .batch = config.batch * config.accumulate,
                      .rank = static_cast<Rank>(config.shard_index),
                      .workers = static_cast<int>(config.shard_count),
                      .seed = static_cast<Seed>(config.seed),
                      .shuffle = config.shuffle,
                      .drop_last = config.drop_last});
}

Step total_steps(const RunConfig& config, const SampleOrder& order) {
  return config.iterations > 0 ? config.iterations : config.epochs * order.steps_per_epoch();
}

std::unique_ptr<LearningRate> build_schedule(const RunConfig& config, const SampleOrder& order) {
  ScheduleOptions options;
  options.lr = scaled_lr(config.lr, parse_lr_scaling(config.lr_scaling),
                         static_cast<double>(config.batch * config.accumulate),
                         static_cast<double>(config.base_batch));
  options.total_epochs = static_cast<double>(total_steps(config, order)) /
                         static_cast<double>(order.steps_per_epoch());
  options.step_size = config.lr_step_size;
  options.gamma = config.lr_gamma;
  options.milestones = config.lr_milestones;
  options.values = config.lr_values;
  options.min_lr = config.lr_min;
  options.power = config.lr_power;
  options.start_factor = config.lr_start_factor;
  options.end_factor = config.lr_end_factor;
  options.peak_at = config.lr_peak_at;
  auto schedule = schedules().make(config.schedule, options);
  if (config.warmup_epochs == 0) return schedule;
  return with_warmup(std::move(schedule), config.warmup_from, config.warmup_epochs);
}

EvaluatorOptions evaluator_options(const RunConfig& config, const Model& model) {
  return {.batch = config.eval_batch,
          .loader_threads = static_cast<int>(config.loader_threads),
          .placement = {parse_device(config.device), wants_channels_last(config, model)}};
}

TrainerOptions trainer_options(const RunConfig& config, const Model& model,
                               const SampleOrder& order) {
  const Step epoch = order.steps_per_epoch();
  TrainerOptions options;
  options.step = {.seed = static_cast<Seed>(config.seed),
                  .rank = static_cast<Rank>(config.shard_index),
                  .label_smoothing = config.label_smoothing,
                  .pass_samples = config.accumulate > 1 ? config.batch : 0,
                  .device = parse_device(config.device)};
  options.evaluation = evaluator_options(config, model);
  options.placement = options.evaluation.placement;
  options.total_steps = total_steps(config, order);
  options.eval_every_steps = config.eval_every * epoch;
  options.checkpoint_every_steps = config.checkpoint_every > 0 ? config.checkpoint_every : epoch;
  options.record_every_steps = config.record_every;
  options.target_accuracy = config.target_accuracy;
  options.loader_threads = static_cast<int>(config.loader_threads);
  return options;
}

}  // namespace cohort
