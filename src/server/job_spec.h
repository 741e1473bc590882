// What a parameter server has to know about a job. Every worker brings it when it joins; the first
// one's counts, and the others' must be equal.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.h"
#include "optimizers/optimizer.h"
#include "schedules/learning_rate.h"

namespace cohort::server {

struct Block;

// Bounds on what a peer may claim: a server makes room by these numbers.
inline constexpr std::int64_t kMaxArena = std::int64_t{1} << 32;  // elements
inline constexpr int kMaxJobWorkers = 1 << 16;

enum class ServerMode {
  kSync,     // an update is the mean of one gradient of every worker
  kAsync,    // every gradient is an update, at once
  kBounded,  // likewise, but no worker gets more than `staleness` steps ahead of the last one
};
ServerMode parse_server_mode(std::string_view name);  // "sync", "async", "ssp"

enum class WireFormat { kFloat32, kFloat16, kBfloat16 };
WireFormat parse_wire_format(std::string_view name);  // "float32", "float16", "bfloat16"
std::string_view to_text(ServerMode mode);
std::string_view to_text(WireFormat format);
std::size_t bytes_each(WireFormat format);

struct DecayRange {
  Range range;  // in the server's arena; the ranges of a job tile it, or there are none: no decay
  double weight_decay = 0;
};

struct JobSpec {
  int workers = 1;
  int servers = 1;
  int server = 0;         // the one this is for
  std::int64_t size = 0;  // elements of its arena

  ServerMode mode = ServerMode::kSync;
  std::int64_t staleness = 0;     // kBounded: the largest gap between two workers' clocks at a read
  int backup_workers = 0;         // kSync: so many gradients of a round may be missing
  double delay_compensation = 0;  // kAsync, kBounded: lambda of DC-ASGD (Zheng et al. 2017); 0: off
  WireFormat wire = WireFormat::kFloat32;

  std::string optimizer = "sgd";
  optimizers::OptimizerOptions optimizer_options = {};
  std::vector<DecayRange> decay = {};

  std::string schedule = "constant";
  schedules::ScheduleOptions schedule_options = {};
  double warmup_epochs = 0;
  double warmup_from = 0;
  double updates_per_epoch = 1;    // turns the count of updates into the schedule's epochs
  std::int64_t total_updates = 0;  // kSync: the run is over after so many; 0: when workers leave

  std::string layout_digest =
      {};                     // of names, shapes and places: two models that differ, differ here
  std::string settings = {};  // further settings that must agree, a flat JSON object
};

// Of a server's blocks in the order of their places (Layout::of_server), neighbours merged.
std::vector<DecayRange> decay_ranges(std::span<const Block> blocks);

nlohmann::json to_json(const JobSpec& spec);

// Throws PeerError on anything that is not a sound specification: a peer wrote it.
JobSpec job_spec_from(const std::string& text);

// What differs, for the person who started `other`: "--lr is 0.1 here and 0.2 at the others; ...";
// empty when nothing does.
std::string differences(const JobSpec& first, const JobSpec& other);

// Where `spec` is not what the server was told when it was started: `told` is a JSON object of
// settings by the names that flags have, or empty. For the person who started the worker.
std::string differences_from_told(const std::string& told, const JobSpec& spec);

}  // namespace cohort::server
