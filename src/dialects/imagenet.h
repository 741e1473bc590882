// The command line of PyTorch's ImageNet example (pytorch/examples, imagenet/main.py) in our terms.
//
// A pure function from its flags and a description of the machine to a configuration:
// docs/imagenet.md has the table. Nothing here reads files or the environment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "dialects/flag_names.h"

namespace cohort::dialects {

// With the example's own defaults.
struct ImagenetFlags {
  std::string folder;  // has train/ and val/; may be empty with `dummy` only
  std::string arch = "resnet18";
  std::int64_t workers = 4;  // the example's word for loader threads, of one node
  std::int64_t epochs = 90;
  std::int64_t start_epoch = 0;
  std::int64_t batch_size = 256;  // of one node
  double lr = 0.1;
  double momentum = 0.9;
  double weight_decay = 1e-4;
  std::int64_t print_freq = 10;
  std::string resume;
  bool evaluate = false;
  bool pretrained = false;
  std::int64_t world_size = -1;  // nodes; -1: not given
  std::int64_t rank = -1;        // of this node; -1: not given
  std::string dist_url = "tcp://224.66.41.62:23456";
  std::string dist_backend = "nccl";
  std::optional<std::int64_t> seed;
  std::optional<std::int64_t> gpu;
  bool multiprocessing_distributed = false;
  bool no_accel = false;
  bool dummy = false;

  // Ours.
  std::int64_t image_size = 224;
  std::int64_t train_size = 0;  // 0: all
  std::int64_t test_size = 0;
};

// What the program finds around it.
struct Machine {
  int gpus = 0;
  int cores = 1;
  int processes = 1;                // that mpirun or srun started, this one included
  bool torchrun = false;            // has started this process
  std::optional<int> world_size;    // $WORLD_SIZE, of torchrun or for --dist-url env://
  std::optional<int> rank;          // $RANK, likewise
  std::vector<std::string> models;  // all names that --arch may have
  std::string weights;              // file with the weights for --pretrained; empty: none found
};

enum class ImagenetMode {
  kSingle,        // one GPU, or the CPU as one worker
  kDataParallel,  // nn.DataParallel
  kDistributed,   // nn.parallel.DistributedDataParallel
};

struct Translation {
  ImagenetMode mode = ImagenetMode::kSingle;
  config::RunConfig config;
  int nodes = 1;          // above 1: processes that connect by themselves, without mpirun, and
  int node = 0;           // which of them this one is
  std::vector<int> gpus;  // those this process computes on, for "Use GPU: 0 for training"
  std::vector<std::string> notes;  // what the user should know, one line each
};

// Throws ConfigError in terms of the example's flags.
Translation translate(const ImagenetFlags& flags, const Machine& machine);

// The settings that a flag of the example decides: for "batch-size" batch, accumulate and
// eval-batch. `flag` is the long name without dashes, "DIR" for the folder. Empty for a flag that
// decides none, such as print-freq.
std::vector<std::string> settings_of_imagenet_flag(const std::string& flag);

const FlagNames& imagenet_flag_names();

// The lines that the example prints before it trains or evaluates.
std::vector<std::string> imagenet_opening(const ImagenetFlags& flags,
                                          const Translation& translation);

}  // namespace cohort::dialects
