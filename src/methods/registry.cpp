#include "methods/local.h"
#include "methods/update_method.h"

namespace cohort {

const MethodRegistry& methods() {
  static const MethodRegistry registry("method",
                                       {
                                           {"local", "one worker alone, the baseline", make_local},
                                       });
  return registry;
}

}  // namespace cohort
