// The command line of PaddlePaddle's distributed image classification (models repository,
// image_classification/dist_train/dist_train.py) in our terms.
//
// It has been three programs: that of the published README (mid-2018), the one with batch merging
// (October 2018) and a later one (2019) with other names and defaults. All flags are taken; which
// of the three is meant, and so which defaults, learning rates and lines, follows from the flags.
//
// A pure function from flags and a description of the surroundings to a role and a configuration:
// docs/dist_train.md has the tables. Nothing here reads files or the environment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "dialects/flag_names.h"
#include "dialects/paddle_cluster.h"

namespace cohort::dialects {

enum class PaddleRevision {
  kPublished,   // "2018"
  kBatchMerge,  // "2018-10"
  kLater,       // "2019"
};

// What is not given is decided by the revision. Two names of one thing share a member.
struct DistTrainFlags {
  std::string like = "auto";       // ours: auto, 2018, 2018-10, 2019
  std::vector<std::string> given;  // long names of all flags that were written, without dashes

  std::optional<std::string> model;
  std::optional<std::int64_t> batch_size;  // of a device; 2019: of a process
  std::optional<double> learning_rate;     // --learning_rate, --lr
  std::optional<std::int64_t> pass_num;    // --pass_num, --num_epochs
  std::optional<std::int64_t> iterations;  // batches after which a pass ends at the latest; 0: none
  std::optional<std::int64_t> skip_batch_num;
  std::optional<std::string> data_set;  // flowers, cifar10, imagenet
  std::optional<std::string> data_dir;
  std::string data_format = "NCHW";
  std::string device = "GPU";  // --device, --use_gpu
  std::int64_t gpus = 1;
  std::optional<std::int64_t> cpus;  // --cpus, --num_threads
  bool no_test = false;
  std::int64_t start_test_pass = 0;
  std::string update_method = "local";
  bool split_var = true;  // --split_var, --no_split_var
  bool async_mode = false;
  bool no_random = false;
  std::string reduce_strategy = "all_reduce";
  std::int64_t multi_batch_repeat = 1;
  std::optional<std::int64_t> total_images;
  std::optional<std::int64_t> class_dim;
  std::string image_shape = "3,224,224";
  std::string model_save_dir = "output";
  std::string pretrained_model;
  std::string checkpoint;
  std::string lr_strategy = "piecewise_decay";
  bool fp16 = false;
  double scale_loss = 1.0;
  bool enable_dgc = false;
  std::int64_t rampup_begin_step = 5008;
  bool memory_optimize = false;  // --memory_optimize, --with_mem_opt
  bool reduce_master_grad = false;
  bool enable_sequential_execution = false;
  bool enable_ce = false;
  std::string model_category = "models";

  // Ours.
  bool use_fake_data = false;
  std::int64_t train_size = 0;  // 0: all
  std::int64_t test_size = 0;
  std::int64_t seed = 1;
  double peer_timeout = 600;  // seconds to wait for a process that does not come
  std::string job;
  std::string token_file;
  std::string tls_dir;
  bool insecure = false;
};

// What the program finds around it.
struct PaddleSurroundings {
  Variables variables;  // PADDLE_*, TRAINING_ROLE, POD_IP, FLAGS_selected_gpus, CPU_NUM
  int gpus = 0;
  std::vector<std::string> models;  // our names
  bool list_files = false;          // --data_dir has train_list.txt
};

struct DistTrainTranslation {
  PaddleRevision revision = PaddleRevision::kPublished;
  PaddleCluster cluster;
  std::string data_dir;      // as it is looked for
  config::RunConfig config;  // what a trainer trains with
  std::int64_t passes = 1;
  std::int64_t iterations = 0;       // of a pass at most; 0: all
  std::int64_t skip_batches = 0;     // of a pass, not timed
  std::int64_t first_tested = 0;     // pass; -1: none is
  std::vector<std::string> notes;    // what the user should know, one line each
  std::vector<std::string> opening;  // the lines the program begins with
};

// Which of the three programs the flags are for.
PaddleRevision paddle_revision(const DistTrainFlags& flags);

// Where the data are looked for: what the revision has when the user says nothing.
std::string paddle_data_dir(const DistTrainFlags& flags);

// Throws ConfigError in terms of its flags and variables.
DistTrainTranslation translate(const DistTrainFlags& flags, const PaddleSurroundings& around);

FlagNames dist_train_flag_names(PaddleRevision revision);

// What a PSERVER works by, so that also what stands for a flag that it was not given has to be the
// trainers': in the original it builds the model, its optimizer and its rates itself. In the later
// program batch and rate follow from the devices of each host.
std::vector<std::string> dist_train_server_settings(PaddleRevision revision);

}  // namespace cohort::dialects
