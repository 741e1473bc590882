#include <algorithm>
#include <array>

#include "methods/all_reduce.h"
#include "methods/compressed.h"
#include "methods/data_parallel.h"
#include "methods/gossip_method.h"
#include "methods/local.h"
#include "methods/server_method.h"
#include "methods/swamp_method.h"
#include "methods/update_method.h"

namespace cohort {

const MethodRegistry& methods() {
  static const MethodRegistry registry(
      "method", {
                    {"local", "one worker alone, the baseline", make_local},
                    {"data-parallel", "one process: batch split, gradients summed, rank 0 updates",
                     make_data_parallel},
                    {"all-reduce", "gradients averaged while backward runs, every rank updates",
                     make_all_reduce},
                    {"parameter-server", "servers keep the parameters: sync, async or bounded",
                     make_server_method},
                    {"d-psgd", "gossip: models mixed with the neighbours' models", make_gossip},
                    {"choco", "gossip: compressed differences, with any compressor", make_gossip},
                    {"dcd", "gossip: compressed differences, with fine compressors", make_gossip},
                    {"ecd", "gossip: compressed extrapolations, with the finest", make_gossip},
                    {"deep-squeeze", "gossip: compressed models with error feedback", make_gossip},
                    {"ef-sign", "signs with error feedback, sent to all", make_ef_sign},
                    {"sign-sgd", "signs alone, their mean or majority", make_sign_sgd},
                    {"dgc", "few gradients sent to all, the rest remembered", make_dgc},
                    {"power-sgd", "low-rank factors of the gradients summed", make_power_sgd},
                    {"swamp", "workers compete, a server keeps the best model", make_swamp},
                });
  return registry;
}

bool keeps_workers_in_step(std::string_view method) {
  return method != "parameter-server" && method != "swamp";
}

bool waits_in_exchange(std::string_view method, std::string_view server_mode) {
  return method == "parameter-server" && server_mode != "async";
}

bool workers_have_own_models(std::string_view method) {
  return method == "swamp" || models_are_averaged(method);
}

bool workers_have_own_state(std::string_view method) {
  constexpr std::array<std::string_view, 4> kCompressed = {"ef-sign", "sign-sgd", "dgc",
                                                           "power-sgd"};
  return models_are_averaged(method) ||
         std::find(kCompressed.begin(), kCompressed.end(), method) != kCompressed.end();
}

bool models_are_averaged(std::string_view method) {
  const auto names = gossip_algorithms().names();
  return std::find(names.begin(), names.end(), method) != names.end();
}

}  // namespace cohort
