#include "methods/all_reduce.h"
#include "methods/data_parallel.h"
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
                    {"swamp", "workers compete, a server keeps the best model", make_swamp},
                });
  return registry;
}

bool keeps_workers_in_step(std::string_view method) {
  return method != "parameter-server" && !workers_have_own_models(method);
}

bool workers_have_own_models(std::string_view method) { return method == "swamp"; }

}  // namespace cohort
