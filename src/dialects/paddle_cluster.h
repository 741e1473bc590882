// Who takes part in a PaddlePaddle job and which of them this process is, as its environment
// variables say: the names of 2018 (PADDLE_PSERVER_IPS, PADDLE_TRAINERS, ...) and the later ones
// (PADDLE_PSERVER_ENDPOINTS, PADDLE_TRAINERS_NUM, ...).
#pragma once

#include <map>
#include <string>
#include <vector>

namespace cohort::dialects {

// Name and value of variables. An empty value counts as none.
using Variables = std::map<std::string, std::string>;

enum class PaddleMethod { kLocal, kServers, kCollective };

struct PaddleCluster {
  PaddleMethod method = PaddleMethod::kLocal;
  bool is_server = false;
  int index = 0;                         // of this server, or of this trainer
  int trainers = 1;                      // processes
  std::vector<std::string> servers;      // "host:port" each, of kServers
  std::vector<std::string> trainers_at;  // likewise, of kCollective
  std::vector<std::string> notes;        // what the user should know, one line each
};

// `update_method` is local, pserver or nccl2. Throws ConfigError that names the variable at fault.
PaddleCluster find_paddle_cluster(const std::string& update_method, const Variables& variables);

// The variable's value as a number from `low` up, or `otherwise` when it is not set.
int number_in(const Variables& variables, const std::string& name, int low, int otherwise);

}  // namespace cohort::dialects
