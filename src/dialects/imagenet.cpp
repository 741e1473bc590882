#include "dialects/imagenet.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>

#include "core/error.h"
#include "core/text.h"
#include "dialects/flag_checks.h"
#include "methods/settings.h"

namespace cohort::dialects {
namespace {

constexpr std::int64_t kEpochsBetweenDrops = 30;
constexpr double kRateDrop = 0.1;
constexpr std::int64_t kTrainSamples = 1'281'167;
constexpr std::int64_t kTestSamples = 50'000;
constexpr std::int64_t kClasses = 1000;

// resnet50 keeps about 95 MB of activations for each picture of 224 x 224 until backward has used
// them: 3 GB a worker. GPUs hold what the user asks for, as in the example.
constexpr std::int64_t kPassOnCpu = 32;
constexpr std::int64_t kSmallestPass = 8;

std::int64_t ceil_divide(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

void check_dist_url(const std::string& url) {
  const auto begins = [&](std::string_view scheme) { return url.rfind(scheme, 0) == 0; };
  if (url == "env://" || (begins("file://") && url.size() > 7)) return;
  if (begins("tcp://")) {
    const std::size_t colon = url.rfind(':');
    const std::string port = url.substr(colon + 1);
    int number = 0;
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
    if (colon > 6 && error == std::errc{} && end == port.data() + port.size() && number > 0 &&
        number < 65536) {
      return;
    }
  }
  throw ConfigError("--dist-url must be tcp://HOST:PORT, env:// or file://PATH, got '" + url + "'");
}

void check_flags(const ImagenetFlags& flags, const Machine& machine) {
  constexpr double kMany = 1e9;
  if (std::find(machine.models.begin(), machine.models.end(), flags.arch) == machine.models.end()) {
    throw ConfigError(unknown_name("--arch", flags.arch, machine.models));
  }
  if (flags.folder.empty() && !flags.dummy) {
    throw ConfigError(
        "name the folder that has train/ and val/, or use --dummy for generated pictures");
  }
  check_range("--workers", static_cast<double>(flags.workers), 0, 256);
  check_range("--epochs", static_cast<double>(flags.epochs), 1, kMany);
  check_range("--start-epoch", static_cast<double>(flags.start_epoch), 0, kMany);
  check_range("--batch-size", static_cast<double>(flags.batch_size), 1, 1 << 24);
  check_range("--lr", flags.lr, 0.0, 1e6);
  check_range("--momentum", flags.momentum, 0.0, 0.999999);
  check_range("--weight-decay", flags.weight_decay, 0.0, 1e3);
  check_range("--print-freq", static_cast<double>(flags.print_freq), 1, kMany);
  check_range("--image-size", static_cast<double>(flags.image_size), 1, 4096);
  check_range("--train-size", static_cast<double>(flags.train_size), 0, kMany * kMany);
  check_range("--test-size", static_cast<double>(flags.test_size), 0, kMany * kMany);
  if (flags.seed) check_range("--seed", static_cast<double>(*flags.seed), 0, kMany * 1000);
  if (flags.world_size != -1)
    check_range("--world-size", static_cast<double>(flags.world_size), 1, kMany);
  check_dist_url(flags.dist_url);
  static const std::vector<std::string> backends = {"nccl", "gloo", "mpi"};
  if (std::find(backends.begin(), backends.end(), flags.dist_backend) == backends.end()) {
    throw ConfigError(unknown_name("--dist-backend", flags.dist_backend, backends));
  }
  if (!flags.evaluate && flags.resume.empty() && flags.start_epoch >= flags.epochs) {
    throw ConfigError(
        fmt::format("--start-epoch {} leaves nothing of --epochs {} (they are from 0)",
                    flags.start_epoch, flags.epochs));
  }
}

// How many nodes take part: processes that mpirun started, one for each.
std::int64_t count_nodes(const ImagenetFlags& flags, const Machine& machine) {
  std::int64_t nodes = flags.world_size;
  if (nodes == -1 && (flags.dist_url == "env://" || machine.torchrun)) {
    if (!machine.world_size && machine.processes == 1) {
      throw ConfigError("--dist-url env:// needs the variable WORLD_SIZE, or --world-size");
    }
    nodes = machine.world_size.value_or(machine.processes);
  }
  if (nodes == -1) nodes = flags.multiprocessing_distributed ? machine.processes : 1;
  if (flags.rank >= nodes) {
    throw ConfigError(
        fmt::format("--rank {} of --world-size {}: ranks count from 0", flags.rank, nodes));
  }
  if (nodes == machine.processes) return nodes;
  if (machine.processes > 1) {
    throw ConfigError(
        fmt::format("mpirun started {0} processes, {1}: give --world-size {0}", machine.processes,
                    flags.world_size == -1 ? "but nothing says that they train together"
                                           : fmt::format("but --world-size is {}", nodes)));
  }
  if (flags.rank >= 0 || machine.rank) return nodes;
  throw ConfigError(
      fmt::format("--world-size {0} means {0} nodes: give each its --rank, from 0 to {1}, and all "
                  "the same --dist-url tcp://HOST:PORT, an address of node 0; or start all of them "
                  "with `mpirun -n {0} cohort imagenet ...`, one process a node",
                  nodes, nodes - 1));
}

// Builds a Translation; one object per call.
class ImagenetTranslator {
 public:
  ImagenetTranslator(const ImagenetFlags& flags, const Machine& machine)
      : flags_(flags), machine_(machine), gpus_(flags.no_accel ? 0 : machine.gpus) {}

  Translation run() {
    check_flags(flags_, machine_);
    set_data();
    set_optimizer();
    set_warnings();
    nodes_ = count_nodes(flags_, machine_);
    if (nodes_ > machine_.processes) set_connection();
    if (flags_.multiprocessing_distributed || nodes_ > 1) {
      set_distributed();
    } else if (flags_.gpu) {
      set_single();
    } else {
      set_data_parallel();
    }
    set_passes();
    methods::check_config(config());
    return std::move(result_);
  }

 private:
  config::RunConfig& config() { return result_.config; }
  void note(std::string line) { result_.notes.push_back(std::move(line)); }

  void set_data() {
    config().model = flags_.arch;
    config().train_size = flags_.train_size;
    config().test_size = flags_.test_size;
    config().record_every = flags_.print_freq;
    if (flags_.dummy) {
      config().data = "synthetic";
      config().synthetic_shape = fmt::format("3x{0}x{0}", flags_.image_size);
      config().synthetic_classes = kClasses;
      if (config().train_size == 0) config().train_size = kTrainSamples;
      if (config().test_size == 0) config().test_size = kTestSamples;
    } else {
      config().data = "image-folder";
      config().data_dir = flags_.folder;
      config().image_size = flags_.image_size;
      config().augment = "resized-crop";
    }
    if (!flags_.pretrained) return;
    if (machine_.weights.empty()) {
      throw ConfigError(fmt::format(
          "--pretrained: nothing is downloaded, and there is no {0}.safetensors in the data folder "
          "nor where data sets are looked for; docs/imagenet.md shows how to make one of "
          "torchvision's weights with Python",
          flags_.arch));
    }
    config().init = machine_.weights;
  }

  void set_optimizer() {
    config().optimizer = "sgd";
    config().momentum = flags_.momentum;
    config().weight_decay = flags_.weight_decay;
    config().lr = flags_.lr;
    config().schedule = "step";
    config().lr_step_size = kEpochsBetweenDrops;
    config().lr_gamma = kRateDrop;
    config().epochs = flags_.epochs;
    if (flags_.seed) config().seed = *flags_.seed;
    // A checkpoint brings its own epoch, in the example too.
    if (!flags_.resume.empty() || flags_.evaluate) return;
    config().start_epoch = flags_.start_epoch;
  }

  void set_warnings() {
    if (flags_.seed) {
      note(
          "warning: You have chosen to seed training. This will turn on the CUDNN deterministic "
          "setting, which can slow down your training considerably! You may see unexpected "
          "behavior when restarting from checkpoints.");
      note("(Here every run has a seed, and a resumed run ends with the same bits.)");
    }
    if (flags_.gpu) {
      check_gpu(*flags_.gpu);
      note(
          "warning: You have chosen a specific GPU. This will completely disable data "
          "parallelism.");
    }
  }

  void check_gpu(std::int64_t gpu) const {
    if (gpu >= 0 && (gpu < gpus_ || gpus_ == 0)) return;
    if (gpus_ == 0) throw ConfigError(fmt::format("--gpu {}: GPUs count from 0", gpu));
    throw ConfigError(fmt::format("--gpu {}: this machine has {} GPU{}, numbered from 0", gpu,
                                  gpus_, gpus_ == 1 ? "" : "s"));
  }

  std::string no_gpu() const { return flags_.no_accel ? "--no-accel" : "no GPU here"; }

  void use_gpu(std::int64_t gpu) {
    if (gpus_ == 0) {
      note(fmt::format("{}: training on the CPU instead of GPU {}", no_gpu(), gpu));
      return;
    }
    config().device = fmt::format("cuda:{}", gpu);
    result_.gpus = {static_cast<int>(gpu)};
  }

  void use_all_gpus() {
    config().device = "cuda";
    for (int gpu = 0; gpu < gpus_; ++gpu) result_.gpus.push_back(gpu);
  }

  void set_single() {
    result_.mode = ImagenetMode::kSingle;
    config().method = "local";
    config().loader_threads = flags_.workers;
    use_gpu(*flags_.gpu);
    own_batch_ = flags_.batch_size;
  }

  void set_data_parallel() {
    result_.mode = ImagenetMode::kDataParallel;
    config().method = "data-parallel";
    config().workers = gpus_ > 0 ? gpus_ : machine_.cores;
    config().loader_threads = ceil_divide(flags_.workers, config().workers);
    if (gpus_ > 0) {
      use_all_gpus();
      result_.gpus.clear();  // the example does not list them in this mode
    } else {
      note(fmt::format("{}: the batch is split over {} worker{}, one a core", no_gpu(),
                       config().workers, config().workers == 1 ? "" : "s"));
    }
    own_batch_ = flags_.batch_size;
    sharing_pass_ = config().workers;
  }

  void set_distributed() {
    result_.mode = ImagenetMode::kDistributed;
    config().method = "all-reduce";
    const std::int64_t on_node = workers_on_node();
    config().workers = nodes_ * on_node;
    set_engine();
    // One process with --gpu divides by the machine's GPUs too: its siblings have the others.
    const bool one_of_several = flags_.gpu && !flags_.multiprocessing_distributed && gpus_ > 0;
    const std::int64_t share = one_of_several ? gpus_ : on_node;
    own_batch_ = flags_.batch_size / share;
    if (own_batch_ == 0) {
      throw ConfigError(fmt::format("--batch-size {} is for the whole node: too few for {} workers",
                                    flags_.batch_size, share));
    }
    if (own_batch_ * share != flags_.batch_size) {
      note(fmt::format("each of {} workers takes {} of --batch-size {}, the remainder is dropped",
                       share, own_batch_, flags_.batch_size));
    }
    config().loader_threads = ceil_divide(flags_.workers, share);
  }

  std::int64_t workers_on_node() {
    if (flags_.multiprocessing_distributed && flags_.gpu) {
      note("--gpu has no effect with --multiprocessing-distributed, which takes all");
    } else if (flags_.gpu) {
      use_gpu(*flags_.gpu);
      return 1;
    }
    if (gpus_ > 0) {
      use_all_gpus();
      return gpus_;
    }
    if (!flags_.multiprocessing_distributed) return 1;
    note(fmt::format("{}: {} worker{} on this node, one a core", no_gpu(), machine_.cores,
                     machine_.cores == 1 ? "" : "s"));
    return machine_.cores;
  }

  // Nodes without mpirun: PyTorch's own ways to find each other.
  void set_connection() {
    constexpr double kPatience = 600;  // they are started by hand, one after another
    const bool by_default = flags_.dist_url == ImagenetFlags().dist_url;
    if (flags_.dist_url.starts_with("tcp://") && !(by_default && machine_.torchrun)) {
      if (by_default) {
        throw ConfigError(fmt::format(
            "--world-size {} without mpirun needs --dist-url tcp://HOST:PORT: an address of node 0 "
            "that the others reach, and a free port there",
            nodes_));
      }
      config().meet = flags_.dist_url.substr(6);
    } else if (flags_.dist_url.starts_with("file://")) {
      throw ConfigError("--dist-url " + flags_.dist_url +
                        ": nodes do not meet in a file; give tcp://HOST:PORT or env://");
    }
    config().peer_timeout = kPatience;
    result_.nodes = static_cast<int>(nodes_);
    result_.node = static_cast<int>(flags_.rank >= 0 ? flags_.rank : *machine_.rank);
  }

  void set_engine() {
    if (result_.nodes > 1) {
      config().engine = "tcp";
      if (flags_.dist_backend != "gloo") {
        note("--dist-backend " + flags_.dist_backend + ": the nodes exchange gradients over tcp");
      }
      return;
    }
    if (machine_.processes > 1) {
      config().engine = "mpi";
      if (flags_.rank >= 0) note("--rank and --dist-url have no effect: mpirun numbers the nodes");
      return;
    }
    if (flags_.dist_backend == "nccl" && gpus_ > 1) {
      config().engine = "nccl";
    } else if (flags_.dist_backend == "nccl" && gpus_ == 0) {
      note("--dist-backend nccl needs GPUs: the workers exchange gradients in shared memory");
    } else if (flags_.dist_backend != "nccl") {
      note("--dist-backend " + flags_.dist_backend +
           ": one process, so the workers exchange gradients in shared memory");
    }
  }

  // own_batch_ becomes passes that fit in main memory; `sharing_pass_` workers divide each.
  void set_passes() {
    config().batch = own_batch_;
    config().eval_batch = ceil_divide(own_batch_, sharing_pass_);
    const std::int64_t limit = kPassOnCpu * sharing_pass_;
    if (gpus_ > 0 || own_batch_ <= limit) return;
    std::int64_t pass = limit;
    while (own_batch_ % pass != 0) --pass;
    if (pass < kSmallestPass * sharing_pass_) {
      pass = ceil_divide(own_batch_, ceil_divide(own_batch_, limit));
    }
    config().batch = pass;
    config().accumulate = ceil_divide(own_batch_, pass);
    config().eval_batch = kPassOnCpu;
    const std::int64_t rounded = pass * config().accumulate;
    note(fmt::format(
        "each {} {} goes through memory in {} passes of {}, one step at the end; batch "
        "normalisation sees {} at a time{}",
        result_.mode == ImagenetMode::kDistributed ? "worker's batch of" : "batch of", own_batch_,
        config().accumulate, pass, ceil_divide(pass, sharing_pass_),
        rounded == own_batch_ ? "" : fmt::format(". The batch is rounded up to {}", rounded)));
  }

  const ImagenetFlags& flags_;
  const Machine& machine_;
  const int gpus_;
  std::int64_t nodes_ = 1;
  std::int64_t own_batch_ = 0;     // samples of one step and worker; data-parallel: of all workers
  std::int64_t sharing_pass_ = 1;  // workers that divide a forward pass among them
  Translation result_;
};

}  // namespace

Translation translate(const ImagenetFlags& flags, const Machine& machine) {
  return ImagenetTranslator(flags, machine).run();
}

std::vector<std::string> settings_of_imagenet_flag(const std::string& flag) {
  static const std::map<std::string, std::vector<std::string>> settings = {
      {"DIR", {"data-dir"}},
      {"arch", {"model"}},
      {"workers", {"loader-threads"}},
      {"epochs", {"epochs"}},
      {"batch-size", {"batch", "accumulate", "eval-batch"}},
      {"lr", {"lr"}},
      {"momentum", {"momentum"}},
      {"weight-decay", {"weight-decay"}},
      {"seed", {"seed"}},
      {"gpu", {"device"}},
      {"multiprocessing-distributed", {"method", "workers", "batch", "accumulate"}},
      {"no-accel", {"device"}},
      {"dummy", {"data"}},
      {"image-size", {"image-size", "synthetic-shape"}},
      {"train-size", {"train-size"}},
      {"test-size", {"test-size"}},
  };
  const auto found = settings.find(flag);
  return found == settings.end() ? std::vector<std::string>{} : found->second;
}

const FlagNames& imagenet_flag_names() {
  static const FlagNames names = {{"model", "--arch"},
                                  {"data-dir", "DIR"},
                                  {"batch", "--batch-size (a worker's share)"},
                                  {"lr", "--lr"},
                                  {"momentum", "--momentum"},
                                  {"weight-decay", "--weight-decay"},
                                  {"epochs", "--epochs"},
                                  {"seed", "--seed"},
                                  {"workers", "the number of workers (--world-size, times GPUs)"},
                                  {"loader-threads", "--workers"},
                                  {"meet", "--dist-url"},
                                  {"image-size", "--image-size"},
                                  {"train-size", "--train-size"},
                                  {"test-size", "--test-size"}};
  return names;
}

std::vector<std::string> imagenet_opening(const ImagenetFlags& flags,
                                          const Translation& translation) {
  std::vector<std::string> lines;
  for (const int gpu : translation.gpus)
    lines.push_back(fmt::format("Use GPU: {} for training", gpu));
  lines.push_back(fmt::format(
      "=> {} '{}'", flags.pretrained ? "using pre-trained model" : "creating model", flags.arch));
  return lines;
}

}  // namespace cohort::dialects
