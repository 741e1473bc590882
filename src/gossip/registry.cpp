#include "core/error.h"
#include "core/text.h"
#include "gossip/algorithm.h"
#include "gossip/choco.h"
#include "gossip/d_psgd.h"
#include "gossip/dcd.h"
#include "gossip/deep_squeeze.h"
#include "gossip/ecd.h"

namespace cohort::gossip {

std::shared_ptr<GossipVectors> vectors_of(const GossipOptions& options) {
  return options.vectors != nullptr ? options.vectors : make_host_vectors(options.codec);
}

const GossipRegistry& gossip_algorithms() {
  static const GossipRegistry registry(
      "gossip method",
      {
          {"d-psgd", "models averaged with neighbours' models", make_d_psgd},
          {"choco", "compressed differences to estimates, any compressor", make_choco},
          {"dcd", "compressed differences of the models themselves", make_dcd},
          {"ecd", "compressed extrapolations, fine compressors only", make_ecd},
          {"deep-squeeze", "compressed models with error feedback", make_deep_squeeze},
      });
  return registry;
}

}  // namespace cohort::gossip
