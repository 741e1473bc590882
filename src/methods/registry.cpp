#include "methods/all_reduce.h"
#include "methods/data_parallel.h"
#include "methods/local.h"
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
                });
  return registry;
}

}  // namespace cohort
