#include "engine/assemble.h"

#include <ATen/Parallel.h>
#include <spdlog/fmt/fmt.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/error.h"
#include "core/random.h"
#include "core/text.h"
#include "data/partition.h"
#include "data/text.h"
#include "engine/device.h"
#include "engine/generator.h"
#include "engine/text_settings.h"
#include "methods/method_traits.h"
#include "methods/server_access.h"
#include "methods/settings.h"
#include "methods/swamp_method.h"

namespace cohort::engine {
namespace {

constexpr double kAgreeEverySeconds = 2;  // as long as one may wait for what was asked to stop

data::SampleShape parse_shape(const std::string& text) {
  const std::vector<std::string> parts = split(text, 'x');
  data::SampleShape shape;
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

std::vector<std::int64_t> own_samples(const config::RunConfig& config, const data::Dataset& train,
                                      const WorkerPlace& place) {
  const data::PartitionKind kind = data::partition_kind(config.partition);
  // Parts drawn anew for every epoch are what workers have who share the order of all samples.
  if (kind == data::PartitionKind::kNone || config.reshuffle) return {};
  if (place.size == 1) {
    throw ConfigError("--partition " + config.partition +
                      " divides the data between workers: give --workers above 1");
  }
  std::vector<std::int64_t> labels(static_cast<std::size_t>(train.size()));
  for (std::int64_t i = 0; i < train.size(); ++i) {
    labels[static_cast<std::size_t>(i)] = train.label(i);
  }
  auto parts = data::partition(kind, labels, place.size, config.partition_alpha,
                               static_cast<Seed>(config.seed));
  return std::move(parts[static_cast<std::size_t>(place.rank)]);
}

// "0,0,1,1"
std::vector<int> parse_world(const std::string& text) {
  std::vector<int> devices;
  for (const std::string& part : split(text, ',')) {
    int device = -1;
    const auto parsed = std::from_chars(part.data(), part.data() + part.size(), device);
    if (parsed.ec != std::errc{} || parsed.ptr != part.data() + part.size() || device < 0) {
      throw ConfigError("--world takes the GPU of each worker, e.g. 0,0,1,1; got '" + text + "'");
    }
    devices.push_back(device);
  }
  return devices;
}

methods::BucketSizes bucket_sizes(const config::RunConfig& config) {
  constexpr double kMebibyte = 1 << 20;
  methods::BucketSizes sizes;
  sizes.first_bytes = static_cast<std::int64_t>(config.first_bucket * kMebibyte);
  if (config.bucket == "auto") return sizes;
  double mebibytes = 0;
  const char* end = config.bucket.data() + config.bucket.size();
  const auto parsed = std::from_chars(config.bucket.data(), end, mebibytes);
  if (parsed.ec != std::errc{} || parsed.ptr != end || !(mebibytes >= 0.001 && mebibytes <= 1e6)) {
    throw ConfigError("--bucket takes MiB from 0.001 to 1000000, or auto; got '" + config.bucket +
                      "'");
  }
  sizes.bytes = static_cast<std::int64_t>(mebibytes * kMebibyte);
  return sizes;
}

optimizers::OptimizerOptions optimizer_options(const config::RunConfig& config) {
  return {.momentum = config.momentum,
          .nesterov = config.nesterov,
          .beta1 = config.beta1,
          .beta2 = config.beta2,
          .epsilon = config.epsilon};
}

// Whether every worker goes through the whole training set, in an order of its own.
bool trains_on_everything(const config::RunConfig& config) {
  return config.partition == "all" || methods::traits_of(config.method).sees_all_data;
}

methods::StatisticsPolicy statistics_policy(const std::string& name) {
  if (name == "mean") return methods::StatisticsPolicy::kMean;
  return name == "synchronised" ? methods::StatisticsPolicy::kSynchronised
                                : methods::StatisticsPolicy::kFirstRank;
}

}  // namespace

std::chrono::nanoseconds patience(const config::RunConfig& config) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(config.peer_timeout));
}

std::unique_ptr<data::DataSplits> open_data(const config::RunConfig& config,
                                            const data::SearchPath& search) {
  data::DataRequest request;
  request.name = config.data;
  request.search = config.data_dir.empty() ? search : data::SearchPath{config.data_dir};
  request.train_skip = config.train_skip;
  request.train_size = config.train_size;
  request.test_size = config.test_size;
  request.augment = config.augment;
  request.fast_decode = config.fast_decode;
  request.normalize = config.normalize;
  request.image_size = config.image_size;
  request.synthetic_shape = parse_shape(config.synthetic_shape);
  request.synthetic_classes = config.synthetic_classes;
  request.text = text_request(config);
  request.seed = static_cast<Seed>(config.seed);
  return data::load_data(request);
}

std::unique_ptr<models::Model> build_model(const config::RunConfig& config,
                                           const data::Dataset& data, InitialWeights weights) {
  const data::SampleShape shape = data.shape();
  const models::ModelOptions options{
      .channels = shape.channels,
      .height = shape.height,
      .width = shape.width,
      .classes = static_cast<std::int64_t>(data.class_names().size()),
      .dropout = config.dropout,
      .depth = config.depth,
      .widen = config.widen,
      .growth = config.growth,
      .text = data::as_text(data) != nullptr,
      .rnn_hidden = config.rnn_hidden,
      .rnn_layers = config.rnn_layers,
      .tie_weights = config.tie_weights};
  if (options.text) check_text_settings(config);
  at::Generator generator;
  if (weights == InitialWeights::kFromSeed) {
    generator = make_generator(derive_seed(static_cast<Seed>(config.seed), "initialize"));
  }
  return models::models().make(config.model, options, std::move(generator));
}

std::int64_t choose_threads(const config::RunConfig& config, const models::Model& model,
                            std::int64_t cores) {
  if (config.threads > 0) return config.threads;
  // Of a forward and backward pass at least; convolutions use each weight more than once. Measured:
  // mlp-100 at batch 100 (4.8e7) is a quarter faster with one thread, mnistnet at batch 64 (1.7e8)
  // with two.
  constexpr double kWorthASecondThread = 1e8;
  const double operations =
      6.0 * static_cast<double>(config.batch) * static_cast<double>(model.store().numel());
  return operations < kWorthASecondThread ? 1 : std::max<std::int64_t>(1, cores);
}

void set_compute_threads(config::RunConfig& config, const models::Model& model, int workers_here) {
  config.threads =
      choose_threads(config, model, std::thread::hardware_concurrency() / workers_here);
  at::set_num_threads(static_cast<int>(config.threads));
}

bool wants_channels_last(const config::RunConfig& config, const models::Model& model) {
  if (config.memory_format != "auto") return config.memory_format == "channels-last";
  // Convolutions run 1.3 to 1.6 times faster that way; a network without any has no use for it.
  for (const models::Parameter& parameter : model.store().parameters()) {
    if (parameter.value.dim() == 4) return true;
  }
  return false;
}

at::Device worker_device(const config::RunConfig& config, const WorkerPlace& place) {
  if (!config.world.empty()) {
    const std::vector<int> devices = parse_world(config.world);
    if (static_cast<int>(devices.size()) != place.size) {
      throw ConfigError("--world names the GPUs of " + std::to_string(devices.size()) +
                        " workers, but there are " + std::to_string(place.size) +
                        ": give --workers " + std::to_string(devices.size()) +
                        ", or one number for each worker");
    }
    const std::string device = std::to_string(devices[static_cast<std::size_t>(place.rank)]);
    try {
      return parse_device("cuda:" + device);
    } catch (const ConfigError& error) {
      throw ConfigError("--world " + config.world + " puts rank " + std::to_string(place.rank) +
                        " on GPU " + device + ": " + error.what() + " and leave out --world");
    }
  }
  const at::Device device = parse_device(config.device);
  if (config.device != "cuda" || place.size == 1) return device;
  return {device.type(), static_cast<c10::DeviceIndex>(place.host_rank % cuda_device_count())};
}

at::ScalarType compute_type(const config::RunConfig& config, at::Device device) {
  if (device.is_cpu() && config.precision != "fp32") {
    throw ConfigError("--precision " + config.precision +
                      " is for GPUs: give --device cuda as well, or leave it out");
  }
  return config.precision == "bf16" ? at::kBFloat16 : at::kFloat;
}

methods::ReplicaOptions replica_options(const config::RunConfig& config, const models::Model& model,
                                        at::Device device) {
  return {.optimizer = config.optimizer,
          .optimizer_options = optimizer_options(config),
          .device = device,
          .channels_last = wants_channels_last(config, model),
          .precision = compute_type(config, device),
          .weight_decay = config.weight_decay,
          .decay_normalization = !config.no_norm_decay,
          .clip_norm = config.clip_norm};
}

std::int64_t batch_of_all(const config::RunConfig& config, int workers) {
  return config.batch * config.accumulate *
         (methods::traits_of(config.method).splits_batch ? 1 : workers);
}

std::int64_t validation_size(const config::RunConfig& config, const data::Dataset& train) {
  const methods::SwampSettings own = methods::swamp_settings().read(config.own);
  if (methods::traits_of(config.method).servers != methods::MethodTraits::Servers::kBestModel ||
      own.server != "validated") {
    return 0;
  }
  if (own.validation_size * 2 > train.size()) {
    throw ConfigError("--validation-size " + std::to_string(own.validation_size) +
                      " leaves too little to train on: there are " + std::to_string(train.size()) +
                      " samples");
  }
  return own.validation_size;
}

data::SampleOrder sample_order(const config::RunConfig& config, const data::Dataset& train,
                               const WorkerPlace& place,
                               const std::optional<data::OrderStart>& resumed) {
  const data::OrderStart start = resumed.value_or(data::OrderStart{.epoch = config.start_epoch});
  const data::TextDataset* text = data::as_text(train);
  if (text != nullptr && text->columns() != batch_of_all(config, place.size)) {
    throw ConfigError("a text cut into " + std::to_string(text->columns()) +
                      " columns cannot be read in batches of " +
                      std::to_string(batch_of_all(config, place.size)));
  }
  if (trains_on_everything(config)) {
    // As if alone; the first worker's order is that of a run with one worker.
    const auto seed = static_cast<Seed>(config.seed);
    const auto rank = static_cast<std::uint64_t>(place.rank);
    return data::SampleOrder(
        {.samples = train.size() - validation_size(config, train),
         .batch_of_all = config.batch * config.accumulate,
         .seed = rank == 0 ? seed : derive_seed(seed, "order of a worker", {rank}),
         .shuffle = config.shuffle,
         .drop_last = config.drop_last,
         .start = start});
  }
  return data::SampleOrder({.samples = train.size(),
                            .partition = own_samples(config, train, place),
                            .batch_of_all = batch_of_all(config, place.size),
                            .rank = place.rank,
                            .workers = place.size,
                            .seed = static_cast<Seed>(config.seed),
                            .shuffle = config.shuffle && text == nullptr,
                            .drop_last = config.drop_last,
                            .start = start});
}

std::int64_t largest_tensor(const models::Model& model) {
  std::int64_t largest = 1;
  for (const models::Parameter& one : model.store().parameters()) {
    largest = std::max(largest, one.value.numel());
  }
  return largest;
}

methods::MethodOptions method_options(const config::RunConfig& config,
                                      const collectives::Membership& member) {
  methods::MethodOptions options;
  options.rank = member.rank;
  options.size = member.size;
  options.control = member.control.get();
  options.gradients = member.gradients.get();
  options.gradients_on_device = member.gradients_on_device;
  options.activity = member.activity.get();
  options.buckets = bucket_sizes(config);
  options.tune_buckets = config.bucket == "auto";
  options.statistics = statistics_policy(config.batch_norm);
  options.messages = member.messages.get();
  options.board = member.board;
  options.gossip = gossip_settings(config);
  options.own = config.own;
  options.seed = static_cast<Seed>(config.seed);
  options.patience = patience(config);
  return options;
}

Step total_steps(const config::RunConfig& config, const data::SampleOrder& order) {
  return config.iterations > 0 ? config.iterations : order.steps_until(config.epochs);
}

namespace {

// The samples of a step that --lr is scaled by.
double scaling_batch(const config::RunConfig& config, const data::SampleOrder& order, Rank rank) {
  const auto all = static_cast<double>(order.batch_of_all());
  if (config.lr_scale_by == "world") return all;
  const double own = all / static_cast<double>(std::max<std::int64_t>(1, config.workers));
  if (config.lr_scale_by == "graph") {
    if (config.workers <= 1) return own;
    const auto topology =
        gossip::make_topology(gossip_settings(config), static_cast<int>(config.workers));
    return own * static_cast<double>(topology->neighbours(rank, 0).size() + 1);
  }
  double factor = 0;
  const char* end = config.lr_scale_by.data() + config.lr_scale_by.size();
  const auto parsed = std::from_chars(config.lr_scale_by.data(), end, factor);
  if (parsed.ec != std::errc{} || parsed.ptr != end || !(factor > 0 && factor < 1e9)) {
    throw ConfigError("--lr-scale-by is world, graph, or a number above 0; got '" +
                      config.lr_scale_by + "'");
  }
  return own * factor;
}

schedules::ScheduleOptions schedule_options(const config::RunConfig& config,
                                            const data::SampleOrder& order, Rank rank) {
  schedules::ScheduleOptions options;
  options.lr = schedules::scaled_lr(config.lr, schedules::parse_lr_scaling(config.lr_scaling),
                                    scaling_batch(config, order, rank),
                                    static_cast<double>(config.base_batch));
  options.total_epochs = order.epochs_at(total_steps(config, order));
  options.step_size = config.lr_step_size;
  options.gamma = config.lr_gamma;
  options.milestones = config.lr_milestones;
  options.values = config.lr_values;
  options.shapes = config.lr_shapes;
  options.mu = config.lr_mu;
  options.alpha = config.lr_alpha;
  options.min_lr = config.lr_min;
  options.power = config.lr_power;
  options.start_factor = config.lr_start_factor;
  options.end_factor = config.lr_end_factor;
  options.peak_at = config.lr_peak_at;
  return options;
}

// Settings that are a worker's own affair; in all others the workers of a job agree.
std::string common_settings(const config::RunConfig& config) {
  nlohmann::json settings = methods::to_json(config);
  for (const char* own : {"rank",           "servers",
                          "engine",         "device",
                          "world",          "threads",
                          "memory-format",  "init",
                          "data-dir",       "graph",
                          "loader-threads", "job",
                          "meet",           "token-file",
                          "tls-dir",        "insecure",
                          "peer-timeout",   "replay-window",
                          "eval-every",     "eval-batch",
                          "record-every",   "checkpoint-every",
                          "keep",           "dump-every",
                          "keep-dumps",     "dump-drop"}) {
    settings.erase(own);
  }
  return settings.dump();
}

}  // namespace

std::unique_ptr<schedules::LearningRate> build_schedule(const config::RunConfig& config,
                                                        const data::SampleOrder& order, Rank rank) {
  auto schedule =
      schedules::schedules().make(config.schedule, schedule_options(config, order, rank));
  if (config.warmup_epochs == 0) return schedule;
  return schedules::with_warmup(std::move(schedule), config.warmup_from, config.warmup_epochs);
}

methods::ServerAccess server_access(const config::RunConfig& config, const data::SampleOrder& order,
                                    methods::ServerAccess access) {
  const methods::SwampSettings swamp = methods::swamp_settings().read(config.own);
  access.swamp = {.workers = static_cast<int>(config.workers),
                  .policy = swamp.server,
                  .hysteresis = swamp.hysteresis,
                  .settings = common_settings(config)};
  server::JobSpec& spec = access.spec;
  spec.workers = static_cast<int>(config.workers);
  spec.mode = server::parse_server_mode(config.server_mode);
  const bool sync = spec.mode == server::ServerMode::kSync;
  spec.staleness = spec.mode == server::ServerMode::kBounded ? config.staleness : 0;
  spec.backup_workers = static_cast<int>(config.backup_workers);
  spec.delay_compensation = config.delay_compensation;
  spec.wire = server::parse_wire_format(config.wire);
  spec.optimizer = config.optimizer;
  spec.optimizer_options = optimizer_options(config);
  spec.schedule = config.schedule;
  spec.schedule_options = schedule_options(config, order, 0);
  spec.warmup_epochs = config.warmup_epochs;
  spec.warmup_from = config.warmup_from;
  // Every gradient of every worker is an update, unless a round makes one of them all.
  const auto steps = static_cast<double>(order.steps_per_epoch());
  spec.updates_per_epoch = sync ? steps : steps * static_cast<double>(config.workers);
  const Step total = total_steps(config, order);
  spec.total_updates = sync ? total : 0;
  access.updates_asked = sync ? total : total * config.workers;
  spec.settings = common_settings(config);
  access.sharding = server::parse_sharding(config.sharding);
  access.weight_decay = config.weight_decay;
  access.decay_normalization = !config.no_norm_decay;
  access.window_bytes = static_cast<std::size_t>(config.replay_window) << 20;
  return access;
}

EvaluatorOptions evaluator_options(const config::RunConfig& config, const models::Model& model,
                                   at::Device device) {
  return {.batch = config.eval_batch,
          .loader_threads = static_cast<int>(config.loader_threads),
          .placement = {device, wants_channels_last(config, model), compute_type(config, device)}};
}

TrainerOptions trainer_options(const config::RunConfig& config, const models::Model& model,
                               const data::SampleOrder& order, const WorkerPlace& place) {
  TrainerOptions options;
  const at::Device device = worker_device(config, place);
  // What a worker takes in one forward pass when it takes several for a step.
  const std::int64_t pass = (order.batch_size() + config.accumulate - 1) / config.accumulate;
  options.step = {.seed = static_cast<Seed>(config.seed),
                  .rank = place.rank,
                  .workers = trains_on_everything(config) ? 1 : place.size,
                  .label_smoothing = config.label_smoothing,
                  .pass_samples = config.accumulate > 1 ? pass : 0,
                  .passes = (order.batch_size() + pass - 1) / pass,
                  .device = device,
                  .record = config.graph};
  options.evaluation = evaluator_options(config, model, device);
  options.placement = options.evaluation.placement;
  options.total_steps = total_steps(config, order);
  options.start_epoch = config.start_epoch;
  options.eval_every_epochs = config.eval_every;
  options.checkpoint_every_steps = config.checkpoint_every;
  options.record_every_steps = config.record_every;
  options.dump_every_steps = config.dump_every;
  const methods::MethodTraits& traits = methods::traits_of(config.method);
  const bool averaged = traits.models == methods::MethodTraits::Models::kAveraged;
  const Step between = methods::steps_between_exchanges(config);
  options.save_each = traits.own_state;
  // Also where workers that share a model are on their own for a while. They can stop there, too.
  options.average_models = averaged || (options.save_each && between > 1);
  options.agree_every_steps = averaged || !options.save_each ? between : 1;
  // To ask all waits for all: where steps do not, it is done now and then only.
  if (options.average_models) options.agree_every_seconds = kAgreeEverySeconds;
  options.evaluate_each = config.eval_workers;
  options.patience = patience(config);
  options.target_accuracy = config.target_accuracy;
  options.split = config.eval_split;
  options.loader_threads = static_cast<int>(config.loader_threads);
  return options;
}

}  // namespace cohort::engine
