#include "dialects/dist_train.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"
#include "core/text.h"
#include "dialects/dist_train_arguments.h"
#include "dialects/flag_checks.h"
#include "dialects/paddle_models.h"
#include "methods/settings.h"

namespace cohort::dialects {
namespace {

constexpr double kPaddleRateDrop = 0.1;
constexpr double kWarmupPasses = 5;
constexpr std::int64_t kReaderThreads = 8;
constexpr std::int64_t kMaxValues = 10'000;  // of a learning rate that changes with every pass

void check_flags(const DistTrainFlags& flags) {
  const auto count = [](const std::optional<std::int64_t>& value) {
    return static_cast<double>(value.value_or(0));
  };
  constexpr double kMany = 1e9;
  check_choice("--like", flags.like, {"auto", "2018", "2018-10", "2019"});
  check_range("--batch_size", count(flags.batch_size), 1, 1 << 24);
  check_range("--learning_rate", *flags.learning_rate, 0, 1e6);
  check_range("--pass_num", count(flags.pass_num), 1, kMany);
  check_range("--iterations", count(flags.iterations), 0, kMany);
  check_range("--skip_batch_num", count(flags.skip_batch_num), 0, kMany);
  check_range("--gpus", static_cast<double>(flags.gpus), 1, 1024);
  if (flags.cpus) check_range("--cpus", count(flags.cpus), 1, 4096);
  check_range("--multi_batch_repeat", static_cast<double>(flags.multi_batch_repeat), 1, 1e6);
  check_range("--start_test_pass", static_cast<double>(flags.start_test_pass), 0, kMany);
  check_range("--train_size", static_cast<double>(flags.train_size), 0, 1e15);
  check_range("--test_size", static_cast<double>(flags.test_size), 0, 1e15);
  check_range("--peer_timeout", flags.peer_timeout, 1, 1e6);
  check_range("--seed", static_cast<double>(flags.seed), 0, 1e15);
  check_choice("--data_set", *flags.data_set, {"cifar10", "flowers", "imagenet"});
  check_choice("--data_format", flags.data_format, {"NCHW", "NHWC"});
  check_choice("--device", flags.device, {"CPU", "GPU"});
  check_choice("--reduce_strategy", flags.reduce_strategy, {"all_reduce", "allreduce", "reduce"});
  check_choice("--lr_strategy", flags.lr_strategy, {"piecewise_decay", "cosine_decay", "constant"});
  if (flags.fp16) {
    throw ConfigError("--fp16 is not here: networks compute in float32; leave it out");
  }
  if (flags.enable_dgc) {
    throw ConfigError("--enable_dgc is not here: gradients are sent whole; leave it out");
  }
}

// Builds a DistTrainTranslation; one object per call.
class DistTrainTranslator {
 public:
  DistTrainTranslator(const DistTrainFlags& flags, const PaddleSurroundings& around)
      : flags_(with_defaults(flags)), around_(around) {
    result_.revision = paddle_revision(flags);
    result_.opening = dist_train_opening(flags, around.variables);
  }

  DistTrainTranslation run() {
    check_flags(flags_);
    result_.cluster = find_paddle_cluster(flags_.update_method, around_.variables);
    for (std::string& line : result_.cluster.notes) note(std::move(line));
    set_network();
    const std::vector<std::string> notes_of_servers = result_.notes;
    set_model_and_data();
    set_devices();
    set_method();
    set_learning_rate();
    set_passes();
    note_what_has_no_effect();
    methods::check_config(config());
    // What a server was told has to fit; that it has no effect there is clear.
    if (result_.cluster.is_server) result_.notes = notes_of_servers;
    return std::move(result_);
  }

 private:
  config::RunConfig& config() { return result_.config; }
  const PaddleCluster& cluster() const { return result_.cluster; }
  bool later() const { return result_.revision == PaddleRevision::kLater; }
  void note(std::string line) { result_.notes.push_back(std::move(line)); }
  bool given(const char* name) const {
    return std::find(flags_.given.begin(), flags_.given.end(), name) != flags_.given.end();
  }

  void set_network() {
    config().peer_timeout = flags_.peer_timeout;
    config().job = flags_.job;
    config().token_file = flags_.token_file;
    config().tls_dir = flags_.tls_dir;
    config().insecure = flags_.insecure;
  }

  // "3,224,224"
  std::int64_t image_side() const {
    const std::vector<std::string> parts = split(flags_.image_shape, ',');
    if (parts.size() == 3 && parts[0] == "3" && parts[1] == parts[2] && parts[1].size() <= 4 &&
        parts[1].find_first_not_of("0123456789") == std::string::npos && !parts[1].empty()) {
      const std::int64_t side = std::stoll(parts[1]);
      if (side >= 1 && side <= 4096) return side;
    }
    throw ConfigError("--image_shape must be 3,SIDE,SIDE, e.g. 3,224,224; got '" +
                      flags_.image_shape + "'");
  }

  void set_model_and_data() {
    config().model = paddle_model(*flags_.model, around_.models);
    config().init = flags_.pretrained_model;
    config().no_norm_decay = config().model == "dist_resnet50";
    config().memory_format = flags_.data_format == "NHWC" ? "channels-last" : "auto";
    config().train_size = flags_.train_size;
    config().test_size = flags_.test_size;
    // A number that the user wrote, not the one of ImageNet that stands there otherwise.
    if (given("total_images")) config().train_size = *flags_.total_images;
    config().seed = flags_.seed;
    config().shuffle = !flags_.no_random;
    result_.data_dir = *flags_.data_dir;
    const bool small = *flags_.data_set == "cifar10";
    const std::int64_t side = small && !given("image_shape") ? 32 : image_side();
    if (flags_.use_fake_data) {
      config().data = "synthetic";
      config().synthetic_shape = fmt::format("3x{0}x{0}", side);
      config().synthetic_classes = small ? 10 : *flags_.data_set == "flowers" ? 102 : 1000;
      if (given("class_dim")) config().synthetic_classes = *flags_.class_dim;
    } else if (small) {
      config().data = "cifar-10";
      if (given("data_dir")) config().data_dir = *flags_.data_dir;
      if (side != 32) config().image_size = side;
    } else {
      config().data = around_.list_files ? "image-list" : "image-folder";
      config().data_dir = *flags_.data_dir;
      config().image_size = side;
      config().augment = "resized-crop";
    }
    if (given("class_dim") && !flags_.use_fake_data) {
      note("--class_dim has no effect: the network has as many outputs as the data have classes");
    }
  }

  // How many devices this process computes on, and which.
  void set_devices() {
    const Variables& variables = around_.variables;
    const auto selected = variables.find("FLAGS_selected_gpus");
    const bool one = selected != variables.end() && !selected->second.empty();
    const int cpu_devices = number_in(variables, "CPU_NUM", 1, 0);
    on_gpu_ = flags_.device == "GPU" && around_.gpus > 0;
    if (flags_.device == "GPU" && !on_gpu_) note("no GPU was found: computing on the CPU");
    devices_ = flags_.device == "GPU" ? flags_.gpus : std::max(1, cpu_devices);
    if (later()) devices_ = cpu_devices > 0 ? cpu_devices : on_gpu_ ? around_.gpus : 1;
    if (given("gpus") && (later() || flags_.device == "CPU") && flags_.gpus != devices_) {
      note(
          fmt::format("--gpus {} has no effect {}: this process computes on {}; CPU_NUM says how "
                      "many workers it "
                      "has",
                      flags_.gpus, later() ? "in the program of 2019" : "with --device CPU",
                      devices_ == 1 ? "one device" : fmt::format("{} devices", devices_)));
    }
    // Of the machine, among which the later program divides the batch of a process.
    const std::int64_t share = later() ? devices_ : 1;
    if (one) {
      const int gpu = number_in(variables, "FLAGS_selected_gpus", 0, 0);
      if (on_gpu_ && gpu >= around_.gpus) {
        throw ConfigError(fmt::format("FLAGS_selected_gpus={}: there {} {} GPU{}, counted from 0",
                                      gpu, around_.gpus == 1 ? "is" : "are", around_.gpus,
                                      around_.gpus == 1 ? "" : "s"));
      }
      if (later()) machine_devices_ = devices_;
      if (!later() && given("gpus") && flags_.gpus > 1) {
        note(fmt::format(
            "--gpus {} has no effect with FLAGS_selected_gpus: this process computes on "
            "that one",
            flags_.gpus));
      }
      devices_ = 1;
      if (on_gpu_) config().device = fmt::format("cuda:{}", gpu);
    } else if (on_gpu_) {
      if (devices_ > around_.gpus) {
        throw ConfigError(fmt::format("--gpus {}: there {} {}", devices_,
                                      around_.gpus == 1 ? "is" : "are", around_.gpus));
      }
      config().device = "cuda";
    }
    config().batch = std::max<std::int64_t>(1, *flags_.batch_size / share);
    config().eval_batch = config().batch;
    config().loader_threads = on_gpu_ ? kReaderThreads : 1;
    if (!on_gpu_ && flags_.cpus) config().threads = *flags_.cpus;
  }

  void set_method() {
    config().accumulate = flags_.multi_batch_repeat;
    switch (cluster().method) {
      case PaddleMethod::kLocal:
      case PaddleMethod::kCollective:
        set_collective();
        break;
      case PaddleMethod::kServers:
        set_servers();
        break;
    }
  }

  void set_collective() {
    const std::int64_t workers = cluster().trainers * devices_;
    const bool reduce = flags_.reduce_strategy == "reduce";
    if (workers == 1) {
      config().method = "local";
    } else if (reduce && cluster().trainers == 1) {
      // One device owns the update and gives the others its parameters.
      config().method = "data-parallel";
      config().batch *= workers;
      config().workers = workers;
    } else {
      config().method = "all-reduce";
      config().workers = workers;
      if (cluster().trainers > 1) {
        config().engine = "tcp";
      } else if (on_gpu_) {
        config().engine = "nccl";
      }
    }
    if (!reduce) return;
    if (devices_ == 1) {
      note(
          "--reduce_strategy reduce says how the devices of one process share the update; with one "
          "device it changes nothing");
    } else if (cluster().trainers > 1) {
      note("--reduce_strategy reduce: gradients are all-reduced, with the same result");
    }
  }

  void set_servers() {
    config().method = "parameter-server";
    config().servers = join(cluster().servers, ",");
    config().server_mode = flags_.async_mode ? "async" : "sync";
    config().sharding = flags_.split_var ? "sliced" : "whole";
    config().workers = cluster().trainers;
    config().rank = cluster().index;
    // Devices whose gradients are merged before they are sent: so many passes on one.
    config().accumulate *= devices_;
    if (devices_ > 1) {
      note(fmt::format(
          "the {0} devices of a trainer are {0} passes on one, merged before they are sent; to use "
          "several, start a trainer for each (FLAGS_selected_gpus)",
          devices_));
    } else if (flags_.reduce_strategy == "reduce") {
      note(
          "--reduce_strategy reduce says how the devices of one process share the update; with one "
          "device it changes nothing");
    }
  }

  void set_learning_rate() {
    config().optimizer = "sgd";
    config().momentum = 0.9;
    config().weight_decay = 1e-4;
    config().epochs = *flags_.pass_num;
    const bool published = result_.revision == PaddleRevision::kPublished;
    const double start = *flags_.learning_rate;
    double peak = start;
    if (!published) {
      peak *= static_cast<double>(cluster().trainers * flags_.multi_batch_repeat);
      peak /= static_cast<double>(machine_devices_);
    }
    config().lr = peak;
    if (!published && peak != start) {
      config().warmup_epochs = kWarmupPasses;
      config().warmup_from = start;
    }
    if (flags_.lr_strategy == "constant") return;
    if (flags_.lr_strategy == "cosine_decay") {
      set_cosine(peak);
      return;
    }
    config().schedule = "multi-step";
    config().lr_gamma = kPaddleRateDrop;
    config().lr_milestones =
        published ? std::vector<double>{30, 60, 90} : std::vector<double>{30, 60, 80};
  }

  // Paddle's changes between passes only.
  void set_cosine(double peak) {
    const std::int64_t passes = *flags_.pass_num;
    if (passes == 1 || passes > kMaxValues) {
      config().schedule = "cosine";
      return;
    }
    config().schedule = "piecewise";
    for (std::int64_t pass = 0; pass < passes; ++pass) {
      const double share = static_cast<double>(pass) / static_cast<double>(passes);
      config().lr_values.push_back(peak * (std::cos(std::numbers::pi * share) + 1) / 2);
      if (pass > 0) config().lr_milestones.push_back(static_cast<double>(pass));
    }
  }

  void set_passes() {
    result_.passes = *flags_.pass_num;
    result_.iterations = *flags_.iterations;
    result_.skip_batches = *flags_.skip_batch_num;
    result_.first_tested = flags_.no_test ? -1 : flags_.start_test_pass;
    if (result_.iterations > 0) config().iterations = result_.passes * result_.iterations;
    config().eval_every = flags_.no_test ? 0 : 1;
    config().record_every = result_.revision == PaddleRevision::kPublished ? 1 : 30;
  }

  void note_what_has_no_effect() {
    if (cluster().method != PaddleMethod::kServers) {
      if (flags_.async_mode) note("--async_mode has no effect without parameter servers");
      if (!flags_.split_var) note("--no_split_var has no effect without parameter servers");
    }
    for (const char* name :
         {"memory_optimize", "with_mem_opt", "enable_sequential_execution", "enable_ce",
          "model_category", "scale_loss", "reduce_master_grad", "rampup_begin_step"}) {
      if (given(name)) note(fmt::format("--{} has no effect here", name));
    }
  }

  const DistTrainFlags flags_;
  const PaddleSurroundings& around_;
  bool on_gpu_ = false;
  std::int64_t devices_ = 1;          // of this process
  std::int64_t machine_devices_ = 1;  // when each is another process's
  DistTrainTranslation result_;
};

}  // namespace

DistTrainTranslation translate(const DistTrainFlags& flags, const PaddleSurroundings& around) {
  return DistTrainTranslator(flags, around).run();
}

std::vector<std::string> dist_train_server_settings(PaddleRevision revision) {
  std::vector<std::string> names = {"model", "server-mode", "sharding", "schedule"};
  if (revision != PaddleRevision::kLater) names.insert(names.end(), {"batch", "lr"});
  return names;
}

FlagNames dist_train_flag_names(PaddleRevision revision) {
  const bool later = revision == PaddleRevision::kLater;
  return {
      {"model", "--model"},
      {"data", "--data_set"},
      {"data-dir", "--data_dir"},
      {"batch", "--batch_size"},
      {"lr", later ? "--lr" : "--learning_rate"},
      {"epochs", later ? "--num_epochs" : "--pass_num"},
      {"iterations", "--iterations"},
      {"accumulate", "--multi_batch_repeat, or the number of devices: accumulate"},
      {"schedule", "--lr_strategy (schedule)"},
      {"lr-milestones", "--like or --lr_strategy (lr-milestones)"},
      {"lr-values", "--lr_strategy (lr-values)"},
      {"server-mode", "--async_mode (or not): the update"},
      {"sharding", "--no_split_var (or not): the sharding"},
      {"method", "--update_method (method)"},
      {"servers", "the number of PADDLE_PSERVER_IPS or PADDLE_PSERVER_ENDPOINTS"},
      {"workers", "the number of trainers (PADDLE_TRAINERS or PADDLE_TRAINERS_NUM)"},
      {"rank", "PADDLE_TRAINER_ID"},
      {"train-size", "--train_size"},
      {"test-size", "--test_size"},
      {"seed", "--seed"},
      {"init", "--pretrained_model"},
      {"job", "--job"},
      {"token-file", "--token_file"},
      {"tls-dir", "--tls_dir"},
      {"insecure", "--insecure"},
      {"peer-timeout", "--peer_timeout"},
      {"state-dir", "--state_dir"},
      {"resume", "--checkpoint"},
  };
}

}  // namespace cohort::dialects
