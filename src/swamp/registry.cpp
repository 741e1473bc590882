#include "swamp/registry.h"

#include "swamp/claimed.h"
#include "swamp/validated.h"

namespace cohort::swamp {

const PolicyRegistry& swamp_policies() {
  static const PolicyRegistry registry(
      "swamp server",
      {
          {"validated", "claims are checked on one fixed validation set, paired", make_validated},
          {"fifo", "claims are believed; pulls replay the best models of the past", make_fifo},
          {"latest", "claims are believed; pulls give the one best model", make_latest},
      });
  return registry;
}

}  // namespace cohort::swamp
