#include "methods/shared_settings.h"

#include "config/fields.h"
#include "config/own_settings.h"

namespace cohort::methods {
namespace {

// Of methods whose workers keep in step.
struct PaceSettings {
  Step average_every = 0;
  Step check_replicas = 100;
};

const config::OwnSettings<PaceSettings>& pace_settings() {
  static const config::OwnSettings<PaceSettings> table(
      config::setting_group::kWorkers,
      {{"average-every", &PaceSettings::average_every,
        "steps that workers take alone between exchanges; 0: the method's own number", 0, 1e9},
       {"check-replicas", &PaceSettings::check_replicas,
        "steps between comparisons of the replicas' hashes; 0: never", 0, 1e9}});
  return table;
}

config::ConfigField with_off(config::ConfigField field, const char* off) {
  field.off = off;
  return field;
}

}  // namespace

config::ConfigField average_every_field() {
  return with_off(pace_settings().fields().front(), "1");
}
config::ConfigField check_replicas_field() {
  return with_off(pace_settings().fields().back(), "0");
}

Step steps_between_exchanges(const config::SettingValues& own, Step usual) {
  const Step chosen = pace_settings().read(own).average_every;
  return chosen > 0 ? chosen : usual;
}

Step steps_between_comparisons(const config::SettingValues& own) {
  return pace_settings().read(own).check_replicas;
}

config::ConfigField compressor_field() {
  return {"compressor",
          config::setting_group::kGossip,
          &config::RunConfig::compressor,
          "what is sent of a vector; see `cohort list compressors`",
          0,
          0,
          {}};
}

std::vector<config::ConfigField> server_place_fields() {
  return {
      {"servers",
       config::setting_group::kServers,
       &config::RunConfig::servers,
       "how many to start with the workers, or where they listen: host:port,host:port",
       0,
       0,
       {}},
      {"rank",
       config::setting_group::kServers,
       &config::RunConfig::rank,
       "this worker's number, when workers are started by hand; -1: the launcher's",
       -1,
       65535,
       {}},
  };
}

}  // namespace cohort::methods
