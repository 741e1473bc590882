// The command line of the TensorFlow ps/worker MNIST example (ischlag,
// distributed-tensorflow-example) in our terms.
//
// A pure function from its flags and the text of TF_CONFIG to a role and a configuration:
// docs/mnist.md has the table. Nothing here reads files or the environment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "dialects/flag_names.h"

namespace cohort::dialects {

// With the example's own constants as defaults.
struct MnistFlags {
  std::string ps_hosts;      // "host:port,host:port"
  std::string worker_hosts;  // likewise; how many there are is what counts
  std::string job_name;      // "ps" or "worker"
  std::optional<std::int64_t> task_index;
  bool sync = false;   // synchronous replicas
  bool local = false;  // ours: the same steps without any server
  std::string data_dir = "MNIST_data";
  std::int64_t batch_size = 100;
  double learning_rate = 0.0005;
  std::int64_t training_epochs = 20;
  std::int64_t validation_size = 5000;  // training images that are left out, from the first on
  std::int64_t seed = 1;
  double peer_timeout = 600;  // seconds to wait for a server that does not come
  std::string job;
  std::string token_file;
  std::string tls_dir;
  bool insecure = false;
};

enum class MnistRole { kAlone, kServer, kWorker };

struct MnistTranslation {
  MnistRole role = MnistRole::kAlone;
  int index = 0;                     // of the server or the worker
  std::vector<std::string> servers;  // "host:port" each
  int workers = 1;
  config::RunConfig config;        // what a worker trains with
  std::vector<std::string> notes;  // what the user should know, one line each
};

// Throws ConfigError in terms of the example's flags. `tf_config` is the variable's text, empty
// when it is not set; it counts when none of --ps_hosts, --worker_hosts, --job_name and
// --task_index is given.
MnistTranslation translate(const MnistFlags& flags, const std::string& tf_config);

const FlagNames& mnist_flag_names();

// What a ps says by being started, whatever flags it has: without --sync it is asynchronous. What
// the example's ps does not know, the batch and the rate, it says only where it has the flag.
std::vector<std::string> mnist_server_settings();

}  // namespace cohort::dialects
