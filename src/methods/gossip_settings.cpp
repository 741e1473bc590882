#include "config/fields.h"
#include "methods/gossip_method.h"
#include "methods/shared_settings.h"

namespace cohort::methods {
namespace {

MethodTraits gossip_traits() {
  return {.models = MethodTraits::Models::kAveraged,
          .own_state = true,
          .survives_losses = true,
          .settings = {
              {"topology",
               config::setting_group::kGossip,
               &config::RunConfig::topology,
               "who exchanges with whom; see `cohort list topologies`",
               0,
               0,
               {}},
              compressor_field(),
              {"overlap",
               config::setting_group::kGossip,
               &config::RunConfig::overlap,
               "exchange while the next gradient is computed, where the method permits",
               0,
               0,
               {}},
              {"eval-workers",
               config::setting_group::kRecord,
               &config::RunConfig::eval_workers,
               "gossip: test every worker's own model too, not only their average",
               0,
               0,
               {}},
              average_every_field(),
          }};
}

// Those that feed back what a compressor left out mix by a step size.
MethodTraits with_stepsize(MethodTraits::Stepsize stepsize) {
  MethodTraits traits = gossip_traits();
  traits.stepsize = stepsize;
  traits.settings.push_back(
      {"consensus-stepsize",
       config::setting_group::kGossip,
       &config::RunConfig::consensus_stepsize,
       "choco, deep-squeeze: gamma above 0 up to 1; auto: found by simulation",
       0,
       0,
       {}});
  return traits;
}

}  // namespace

MethodTraits d_psgd_traits() { return gossip_traits(); }

MethodTraits choco_traits() {
  MethodTraits traits = with_stepsize(MethodTraits::Stepsize::kSimulated);
  traits.settings.push_back(
      {"estimates-start",
       config::setting_group::kGossip,
       &config::RunConfig::estimates_start,
       "choco: what estimates begin with: the model that all begin with, or zero",
       0,
       0,
       {"model", "zero"}});
  return traits;
}

MethodTraits dcd_traits() {
  MethodTraits traits = gossip_traits();
  traits.feeds_back = [](const config::RunConfig&) { return false; };
  return traits;
}

MethodTraits ecd_traits() { return dcd_traits(); }

MethodTraits deep_squeeze_traits() {
  return with_stepsize(MethodTraits::Stepsize::kOneUncompressed);
}

}  // namespace cohort::methods
