#include "methods/all_reduce.h"
#include "methods/compressed.h"
#include "methods/data_parallel.h"
#include "methods/diloco.h"
#include "methods/gossip_method.h"
#include "methods/local.h"
#include "methods/server_method.h"
#include "methods/slow_mo.h"
#include "methods/swamp_method.h"
#include "methods/update_method.h"

namespace cohort::methods {

const MethodRegistry& methods() {
  static const MethodRegistry registry(
      "method",
      {
          {"local", "one worker alone, the baseline", make_local, local_traits()},
          {"data-parallel", "one process: batch split, gradients summed, rank 0 updates",
           make_data_parallel, data_parallel_traits()},
          {"all-reduce", "gradients averaged while backward runs, every rank updates",
           make_all_reduce, all_reduce_traits()},
          {"slow-mo", "local steps, then momentum over their average", make_slow_mo,
           slow_mo_traits()},
          {"diloco", "many local steps of AdamW, then one Nesterov step over all", make_diloco,
           diloco_traits()},
          {"parameter-server", "servers keep the parameters: sync, async or bounded",
           make_server_method, server_traits()},
          {"d-psgd", "gossip: models mixed with the neighbours' models", make_gossip,
           d_psgd_traits()},
          {"choco", "gossip: compressed differences, with any compressor", make_gossip,
           choco_traits()},
          {"dcd", "gossip: compressed differences, with fine compressors", make_gossip,
           dcd_traits()},
          {"ecd", "gossip: compressed extrapolations, with the finest", make_gossip, ecd_traits()},
          {"deep-squeeze", "gossip: compressed models with error feedback", make_gossip,
           deep_squeeze_traits()},
          {"ef-sign", "signs with error feedback, sent to all", make_ef_sign, ef_sign_traits()},
          {"sign-sgd", "signs alone, their mean or majority", make_sign_sgd, sign_sgd_traits()},
          {"dgc", "few gradients sent to all, the rest remembered", make_dgc, dgc_traits()},
          {"power-sgd", "low-rank factors of the gradients summed", make_power_sgd,
           power_sgd_traits()},
          {"swamp", "workers compete, a server keeps the best model", make_swamp, swamp_traits()},
      });
  return registry;
}

}  // namespace cohort::methods
