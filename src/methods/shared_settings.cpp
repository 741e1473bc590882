#include "methods/shared_settings.h"

#include "config/fields.h"

namespace cohort {

ConfigField average_every_field() {
  return {"average-every",
          setting_group::kWorkers,
          &RunConfig::average_every,
          "steps that workers take alone between exchanges; 0: the method's own number",
          0,
          1e9,
          {},
          "1"};
}

ConfigField check_replicas_field() {
  return {"check-replicas",
          setting_group::kWorkers,
          &RunConfig::check_replicas,
          "steps between comparisons of the replicas' hashes; 0: never",
          0,
          1e9,
          {},
          "0"};
}

ConfigField compressor_field() {
  return {"compressor",
          setting_group::kGossip,
          &RunConfig::compressor,
          "what is sent of a vector; see `cohort list compressors`",
          0,
          0,
          {}};
}

std::vector<ConfigField> server_place_fields() {
  return {
      {"servers",
       setting_group::kServers,
       &RunConfig::servers,
       "how many to start with the workers, or where they listen: host:port,host:port",
       0,
       0,
       {}},
      {"rank",
       setting_group::kServers,
       &RunConfig::rank,
       "this worker's number, when workers are started by hand; -1: the launcher's",
       -1,
       65535,
       {}},
  };
}

}  // namespace cohort
