#include "apps/dist_train_flags.h"

#include <algorithm>
#include <cctype>

#include "apps/command.h"
#include "core/error.h"

namespace cohort::apps {
namespace {

constexpr const char* kNoEffect = "Accepted";

constexpr const char* kDistTrainExample =
    R"(Roles come from the environment, as in the original:
  PADDLE_TRAINING_ROLE (TRAINING_ROLE)   PSERVER or TRAINER
  PADDLE_TRAINERS, PADDLE_TRAINERS_NUM   how many trainers
  PADDLE_TRAINER_ID                      which of them, from 0
  PADDLE_PSERVER_IPS with PADDLE_PSERVER_PORT (6174), or PADDLE_PSERVER_ENDPOINTS
  PADDLE_CURRENT_IP (POD_IP), or PADDLE_CURRENT_ENDPOINT: of this server
  PADDLE_TRAINER_IPS, or PADDLE_TRAINER_ENDPOINTS: of nccl2's trainers
  FLAGS_selected_gpus, CPU_NUM

  PADDLE_TRAINING_ROLE=PSERVER PADDLE_TRAINERS=2 PADDLE_PSERVER_IPS=127.0.0.1 \
  PADDLE_CURRENT_IP=127.0.0.1 PADDLE_PSERVER_PORT=7164 \
      cohort dist_train --model=ResNet50 --update_method=pserver --device=CPU

Between hosts the processes need a secret in common: `cohort token --file job.token`, and
--token_file=job.token for each. On one host (127.0.0.1) they do not.)";

// Python's distutils.util.strtobool; nothing after the flag means yes.
bool truth_of(const std::string& name, std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const char* yes : {"", "1", "true", "t", "yes", "y", "on"}) {
    if (text == yes) return true;
  }
  for (const char* no : {"0", "false", "f", "no", "n", "off"}) {
    if (text == no) return false;
  }
  throw ConfigError("--" + name + " takes True or False, got '" + text + "'");
}

}  // namespace

DistTrainCommand::DistTrainCommand(CLI::App& app) : command_(app) {
  app.footer(kDistTrainExample);
  add_network_and_data();
  add_duration();
  add_devices();
  add_distribution();
  add_without_effect();
  add_ours();
}

void DistTrainCommand::add_truth(const char* flag, const char* help) {
  // An empty word stands for a flag without a value.
  command_.add_option(std::string("--") + flag, truths_[flag], help)
      ->expected(0, 1)
      ->type_name("[True|False]");
}

void DistTrainCommand::add_network_and_data() {
  command_.add_option("--model", flags.model,
                      "Paddle's name (ResNet50, DistResNet, ...) or one of `cohort list models`");
  command_.add_option("--batch_size", flags.batch_size, "images a device; 2019: a process");
  command_.add_option("--data_set", flags.data_set, "flowers, cifar10 or imagenet");
  command_.add_option("--data_dir", flags.data_dir,
                      "has train_list.txt and val_list.txt, or train/<class>/ and val/<class>/");
  command_.add_option("--image_shape", flags.image_shape, "of what the network sees")
      ->capture_default_str();
  command_.add_option("--total_images", flags.total_images, "use so many training images");
  command_.add_option("--class_dim", flags.class_dim, "classes; the data say so themselves");
  command_.add_option("--data_format", flags.data_format, "NCHW or NHWC")->capture_default_str();
  command_.add_option("--pretrained_model", flags.pretrained_model,
                      "safetensors file with the initial weights");
  command_.add_option("--checkpoint", flags.checkpoint, "go on with the run in this directory");
  add_truth("no_random", "do not shuffle; every run has a fixed seed");
}

void DistTrainCommand::add_duration() {
  command_.add_option("--learning_rate", flags.learning_rate,
                      "tenth of it after 30, 60 and 90 (later 80) passes");
  command_.add_option("--lr", later_.lr, "the same, in 2019's way");
  command_
      .add_option("--lr_strategy", flags.lr_strategy, "piecewise_decay, cosine_decay or constant")
      ->capture_default_str();
  command_.add_option("--pass_num", flags.pass_num, "passes over the training set");
  command_.add_option("--num_epochs", later_.num_epochs, "the same, in 2019's way");
  command_.add_option("--iterations", flags.iterations,
                      "batches after which a pass ends at the latest; 0: with the data");
  command_.add_option("--skip_batch_num", flags.skip_batch_num,
                      "first batches of a pass that are not timed");
  add_truth("no_test", "do not evaluate");
  command_.add_option("--start_test_pass", flags.start_test_pass, "first pass that is evaluated")
      ->capture_default_str();
}

void DistTrainCommand::add_devices() {
  command_.add_option("--device", flags.device, "CPU or GPU")->capture_default_str();
  add_truth("use_gpu", "the same as --device GPU or CPU");
  command_.add_option("--gpus", flags.gpus, "GPUs of this process")->capture_default_str();
  command_.add_option("--cpus", flags.cpus, "threads on the CPU");
  command_.add_option("--num_threads", later_.num_threads, "the same, in 2019's way");
  command_
      .add_option("--reduce_strategy", flags.reduce_strategy,
                  "all_reduce or reduce, between the devices of a process")
      ->capture_default_str();
}

void DistTrainCommand::add_distribution() {
  command_.add_option("--update_method", flags.update_method, "local, pserver or nccl2")
      ->capture_default_str();
  add_truth("async_mode", "pserver: apply each gradient at once");
  add_truth("no_split_var", "pserver: whole parameters by turns, no slices");
  add_truth("split_var", "pserver: slices of parameters");
  command_
      .add_option("--multi_batch_repeat", flags.multi_batch_repeat,
                  "batches whose gradients are merged into one")
      ->capture_default_str();
}

void DistTrainCommand::add_without_effect() {
  for (const char* flag : {"memory_optimize", "with_mem_opt", "enable_sequential_execution",
                           "enable_ce", "reduce_master_grad"}) {
    add_truth(flag, "no effect");
    command_.get_option(std::string("--") + flag)->group(kNoEffect);
  }
  command_.add_option("--model_category", flags.model_category, "no effect")->group(kNoEffect);
  command_.add_option("--scale_loss", flags.scale_loss, "no effect")->group(kNoEffect);
  command_.add_option("--rampup_begin_step", flags.rampup_begin_step, "no effect")
      ->group(kNoEffect);
  add_truth("fp16", "refused: not here");
  add_truth("enable_dgc", "refused: not here");
  command_.get_option("--fp16")->group(kNoEffect);
  command_.get_option("--enable_dgc")->group(kNoEffect);
}

void DistTrainCommand::add_ours() {
  const auto ours = [this](const std::string& names, auto& value, const char* help) {
    command_.add_option(names, value, help)->group(kOwnFlags);
  };
  ours("--like", flags.like, "which program's defaults: auto, 2018, 2018-10 or 2019");
  add_truth("use_fake_data", "generated pictures instead of files");
  command_.get_option("--use_fake_data")->group(kOwnFlags);
  ours("--train_size", flags.train_size, "use only the first N training images");
  ours("--test_size", flags.test_size, "use only the first N test images");
  ours("--seed", flags.seed, "every random choice follows from it; 1 if not given");
  command_
      .add_option("--model_save_dir", flags.model_save_dir,
                  "where run directories are made, in 2019's way")
      ->capture_default_str();
  ours("--runs_dir,--runs-dir", runs_dir_, "where run directories are made");
  ours("--name", name, "folder of this run there");
  ours("--state_dir,--state-dir", state_dir,
       "PSERVER: folder for snapshots: one started again with it goes on");
  command_
      .add_option("--idle_exit,--idle-exit", idle_exit,
                  "PSERVER: seconds without any trainer until it ends")
      ->check(CLI::Range(0.1, 1e9))
      ->capture_default_str()
      ->group(kOwnFlags);
  ours("--peer_timeout,--peer-timeout", flags.peer_timeout,
       "TRAINER: seconds to wait for a process that does not come");
  ours("--job", flags.job, "name that all processes of the job know");
  ours("--token_file,--token-file", flags.token_file,
       "the job's secret, made by `cohort token`; or set COHORT_TOKEN");
  ours("--tls_dir,--tls-dir", flags.tls_dir,
       "authority.pem, certificate.pem and key.pem of this process");
  command_
      .add_flag("--insecure", flags.insecure,
                "no encryption, also across the network: for private networks alone")
      ->group(kOwnFlags);
  command_.add_flag("--explain", explain, "print the same as a native command, and end")
      ->group(kOwnFlags);
}

dialects::DistTrainFlags DistTrainCommand::finished_flags() const {
  dialects::DistTrainFlags result = flags;
  for (const CLI::Option* option : command_.get_options()) {
    if (option->count() > 0) result.given.push_back(option->get_lnames().front());
  }
  const auto is_given = [&](const char* flag) {
    return std::find(result.given.begin(), result.given.end(), flag) != result.given.end();
  };
  const auto truth = [&](const char* flag, bool& value, bool inverted = false) {
    if (is_given(flag)) value = truth_of(flag, truths_.at(flag)) != inverted;
  };
  const auto other_name = [&](auto& value, const auto& later, const char* names) {
    if (value && later) throw ConfigError(std::string(names) + " are two names of one thing");
    if (later) value = later;
  };
  other_name(result.learning_rate, later_.lr, "--learning_rate and --lr");
  other_name(result.pass_num, later_.num_epochs, "--pass_num and --num_epochs");
  other_name(result.cpus, later_.num_threads, "--cpus and --num_threads");
  truth("no_random", result.no_random);
  truth("no_test", result.no_test);
  truth("async_mode", result.async_mode);
  if (is_given("split_var") && is_given("no_split_var")) {
    throw ConfigError("--split_var and --no_split_var are two names of one thing: give one");
  }
  truth("split_var", result.split_var);
  truth("no_split_var", result.split_var, /*inverted=*/true);
  truth("memory_optimize", result.memory_optimize);
  truth("with_mem_opt", result.memory_optimize);
  truth("enable_sequential_execution", result.enable_sequential_execution);
  truth("enable_ce", result.enable_ce);
  truth("reduce_master_grad", result.reduce_master_grad);
  truth("fp16", result.fp16);
  truth("enable_dgc", result.enable_dgc);
  truth("use_fake_data", result.use_fake_data);
  if (is_given("use_gpu")) {
    bool gpu = true;
    truth("use_gpu", gpu);
    if (is_given("device") && gpu != (result.device == "GPU")) {
      throw ConfigError("--use_gpu and --device are two names of one thing: give one");
    }
    result.device = gpu ? "GPU" : "CPU";
  }
  return result;
}

std::string DistTrainCommand::runs_dir_for(dialects::PaddleRevision revision) const {
  if (runs_dir_) return *runs_dir_;
  return revision == dialects::PaddleRevision::kLater ? flags.model_save_dir : "runs";
}

}  // namespace cohort::apps
