// What the rest of the program must know of a method. It stands beside the method's factory in the
// registry, so that nothing else ever compares a method's name.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.h"

namespace cohort::methods {

// What a method chose itself of what the user left open.
struct Adaptation {
  std::string note = {};                   // what and why, for people; empty: nothing
  std::vector<std::string> settings = {};  // which
};
using IsGiven = std::function<bool(const std::string& setting)>;  // by the user

struct MethodTraits {
  // What the workers' models are to each other.
  enum class Models {
    kOne,        // the same model on all
    kAveraged,   // different ones that mix: their average is evaluated and saved
    kCompeting,  // different ones: each is worth looking at, the best is kept
  };
  // What the workers talk to instead of each other.
  enum class Servers { kNone, kParameters, kBestModel };
  // Which processes the workers may be in.
  enum class Workers { kAnywhere, kOneProcess, kOneAlone };
  // How a consensus step size comes about that the user left to us.
  enum class Stepsize { kNone, kSimulated, kOneUncompressed };

  Models models = Models::kOne;
  Servers servers = Servers::kNone;
  Workers workers = Workers::kAnywhere;
  bool own_state = false;        // workers remember different things: a checkpoint holds each one's
  bool survives_losses = false;  // the others go on without a lost worker (--engine tcp)
  bool splits_batch = false;     // --batch is that of all workers together
  bool sees_all_data = false;    // every worker goes through the whole training set
  Stepsize stepsize = Stepsize::kNone;
  std::int64_t average_every = 1;  // steps between exchanges, where the user names none
  // Whether what a compressor leaves out is sent later: then it has to contract. Null: it is.
  std::function<bool(const config::RunConfig&)> feeds_back = {};

  // Flags, keys in files and help of what the method uses beyond the common settings. Several
  // methods may list the same one.
  std::vector<config::ConfigField> settings = {};
  // Chooses settings that nobody gave; `config.workers` is known. Null: all as by default.
  std::function<Adaptation(config::RunConfig&, const IsGiven&)> adapt = {};
  // Throws ConfigError for combinations that make no sense with the method. Null: all do.
  std::function<void(const config::RunConfig&)> check = {};

  // All workers take every step together, so that they may be asked something between two steps.
  bool in_step() const { return servers == Servers::kNone; }
};

// Throws ConfigError when there is no such method.
const MethodTraits& traits_of(std::string_view method);

}  // namespace cohort::methods
