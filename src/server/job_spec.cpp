#include "server/job_spec.h"

#include <array>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text.h"
#include "membership/specification.h"
#include "server/layout.h"
#include "storage/json_differences.h"

namespace cohort::server {
namespace {

using nlohmann::json;

const std::array<std::string, 3> kModes = {"sync", "async", "ssp"};
const std::array<std::string, 3> kFormats = {"float32", "float16", "bfloat16"};

template <class Names>
std::size_t index_of(const Names& names, std::string_view name, std::string_view kind) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return i;
  }
  throw ConfigError(unknown_name(kind, name, names));
}

optimizers::OptimizerOptions optimizer_options_from(const json& object) {
  membership::SpecificationReader reader(object);
  optimizers::OptimizerOptions options;
  options.momentum = reader.number("momentum", 0, 1);
  options.nesterov = reader.boolean("nesterov");
  options.beta1 = reader.number("beta1", 0, 1);
  options.beta2 = reader.number("beta2", 0, 1);
  options.epsilon = reader.number("epsilon", 0, membership::SpecificationReader::kMaxNumber);
  reader.require_all_read();
  return options;
}

schedules::ScheduleOptions schedule_options_from(const json& object) {
  membership::SpecificationReader reader(object);
  schedules::ScheduleOptions options;
  options.lr = reader.number("lr", 0, membership::SpecificationReader::kMaxNumber);
  options.total_epochs = reader.number("epochs", 0, membership::SpecificationReader::kMaxNumber);
  options.step_size = reader.number("lr-step-size", 0, membership::SpecificationReader::kMaxNumber);
  options.gamma = reader.number("lr-gamma", 0, membership::SpecificationReader::kMaxNumber);
  options.milestones = reader.numbers("lr-milestones");
  options.values = reader.numbers("lr-values");
  options.min_lr = reader.number("lr-min", 0, membership::SpecificationReader::kMaxNumber);
  options.power = reader.number("lr-power", 0, membership::SpecificationReader::kMaxNumber);
  options.start_factor =
      reader.number("lr-start-factor", 0, membership::SpecificationReader::kMaxNumber);
  options.end_factor =
      reader.number("lr-end-factor", 0, membership::SpecificationReader::kMaxNumber);
  options.peak_at = reader.number("lr-peak-at", 0, 1);
  if (object.contains("lr-shapes")) options.shapes = reader.numbers("lr-shapes");
  if (object.contains("lr-mu"))
    options.mu = reader.number("lr-mu", 0, membership::SpecificationReader::kMaxNumber);
  if (object.contains("lr-alpha"))
    options.alpha = reader.number("lr-alpha", 0, membership::SpecificationReader::kMaxNumber);
  reader.require_all_read();
  return options;
}

std::vector<DecayRange> decay_from(const json& list, std::int64_t size) {
  if (!list.is_array()) throw PeerError("a job's specification: 'weight-decay' is no list");
  std::vector<DecayRange> decay;
  std::int64_t at = 0;
  for (const json& entry : list) {
    membership::SpecificationReader reader(entry);
    const std::int64_t length = reader.integer("size", 1, kMaxArena);
    decay.push_back(
        {.range = {at, length},
         .weight_decay = reader.number("decay", 0, membership::SpecificationReader::kMaxNumber)});
    reader.require_all_read();
    if (length > size - at) throw PeerError("a job's weight decay reaches beyond its parameters");
    at += length;
  }
  if (!decay.empty() && at != size) {
    throw PeerError("a job's weight decay leaves some of its parameters out");
  }
  return decay;
}

// The names, options and their combination must be such that the server can work with them.
void require_sound(const JobSpec& spec) {
  if (spec.server >= spec.servers) throw PeerError("a job's specification: no such server");
  if (spec.backup_workers >= spec.workers) {
    throw PeerError("a job's specification: as many backup workers as workers");
  }
  if (!(spec.updates_per_epoch > 0)) {
    throw PeerError("a job's specification: an epoch without updates");
  }
  const auto required = [](bool ok) {
    if (!ok) throw PeerError("a job's specification: its schedule has no length");
  };
  required(spec.schedule_options.total_epochs > 0 && spec.schedule_options.step_size > 0);
  optimizers::optimizers().make(spec.optimizer, spec.optimizer_options);
  schedules::with_warmup(schedules::schedules().make(spec.schedule, spec.schedule_options),
                         spec.warmup_from, spec.warmup_epochs);
  membership::further_settings(spec.settings);
}

JobSpec read_spec(const json& object) {
  membership::SpecificationReader reader(object);
  JobSpec spec;
  spec.workers = static_cast<int>(reader.integer("workers", 1, kMaxJobWorkers));
  spec.servers = static_cast<int>(reader.integer("servers", 1, kMaxJobWorkers));
  spec.server = static_cast<int>(reader.integer("server", 0, kMaxJobWorkers));
  spec.size = reader.integer("size", 0, kMaxArena);
  spec.mode = parse_server_mode(reader.text("mode"));
  spec.staleness = reader.integer("staleness", 0, membership::SpecificationReader::kMaxCount);
  spec.backup_workers = static_cast<int>(reader.integer("backup-workers", 0, kMaxJobWorkers));
  spec.delay_compensation =
      reader.number("delay-compensation", 0, membership::SpecificationReader::kMaxNumber);
  spec.wire = parse_wire_format(reader.text("wire-format"));
  spec.optimizer = reader.text("optimizer");
  spec.optimizer_options = optimizer_options_from(reader.member("optimizer-options"));
  spec.decay = decay_from(reader.member("weight-decay"), spec.size);
  spec.schedule = reader.text("schedule");
  spec.schedule_options = schedule_options_from(reader.member("schedule-options"));
  spec.warmup_epochs =
      reader.number("warmup-epochs", 0, membership::SpecificationReader::kMaxNumber);
  spec.warmup_from = reader.number("warmup-from", 0, membership::SpecificationReader::kMaxNumber);
  spec.updates_per_epoch =
      reader.number("updates-per-epoch", 0, membership::SpecificationReader::kMaxNumber);
  spec.total_updates =
      reader.integer("total-updates", 0, membership::SpecificationReader::kMaxCount);
  spec.layout_digest = reader.text("model");
  spec.settings = reader.text("settings");
  reader.require_all_read();
  require_sound(spec);
  return spec;
}

}  // namespace

ServerMode parse_server_mode(std::string_view name) {
  return static_cast<ServerMode>(index_of(kModes, name, "server mode"));
}

WireFormat parse_wire_format(std::string_view name) {
  return static_cast<WireFormat>(index_of(kFormats, name, "wire format"));
}

std::string_view to_text(ServerMode mode) { return kModes[static_cast<std::size_t>(mode)]; }
std::string_view to_text(WireFormat format) { return kFormats[static_cast<std::size_t>(format)]; }

std::size_t bytes_each(WireFormat format) { return format == WireFormat::kFloat32 ? 4 : 2; }

std::vector<DecayRange> decay_ranges(std::span<const Block> blocks) {
  std::vector<DecayRange> ranges;
  for (const Block& block : blocks) {
    if (!ranges.empty() && ranges.back().weight_decay == block.weight_decay) {
      ranges.back().range.size += block.range.size;
    } else {
      ranges.push_back(
          {.range = {block.place, block.range.size}, .weight_decay = block.weight_decay});
    }
  }
  return ranges;
}

json to_json(const JobSpec& spec) {
  json decay = json::array();
  for (const DecayRange& range : spec.decay) {
    decay.push_back({{"size", range.range.size}, {"decay", range.weight_decay}});
  }
  const optimizers::OptimizerOptions& optimizer = spec.optimizer_options;
  const schedules::ScheduleOptions& schedule = spec.schedule_options;
  return {{"workers", spec.workers},
          {"servers", spec.servers},
          {"server", spec.server},
          {"size", spec.size},
          {"mode", to_text(spec.mode)},
          {"staleness", spec.staleness},
          {"backup-workers", spec.backup_workers},
          {"delay-compensation", spec.delay_compensation},
          {"wire-format", to_text(spec.wire)},
          {"optimizer", spec.optimizer},
          {"optimizer-options",
           {{"momentum", optimizer.momentum},
            {"nesterov", optimizer.nesterov},
            {"beta1", optimizer.beta1},
            {"beta2", optimizer.beta2},
            {"epsilon", optimizer.epsilon}}},
          {"weight-decay", decay},
          {"schedule", spec.schedule},
          {"schedule-options",
           {{"lr", schedule.lr},
            {"epochs", schedule.total_epochs},
            {"lr-step-size", schedule.step_size},
            {"lr-gamma", schedule.gamma},
            {"lr-milestones", schedule.milestones},
            {"lr-values", schedule.values},
            {"lr-min", schedule.min_lr},
            {"lr-power", schedule.power},
            {"lr-start-factor", schedule.start_factor},
            {"lr-end-factor", schedule.end_factor},
            {"lr-peak-at", schedule.peak_at},
            {"lr-shapes", schedule.shapes},
            {"lr-mu", schedule.mu},
            {"lr-alpha", schedule.alpha}}},
          {"warmup-epochs", spec.warmup_epochs},
          {"warmup-from", spec.warmup_from},
          {"updates-per-epoch", spec.updates_per_epoch},
          {"total-updates", spec.total_updates},
          {"model", spec.layout_digest},
          {"settings", spec.settings}};
}

JobSpec job_spec_from(const std::string& text) {
  return membership::read_specification(text, read_spec);
}

namespace {

// The members that are settings of their own, by the names that flags have; not those that follow
// from the model, the data or several settings together.
json flat_settings(const JobSpec& spec) {
  json all = to_json(spec);
  json flat = all["optimizer-options"];
  flat.update(all["schedule-options"]);
  for (const char* part : {"optimizer-options", "schedule-options", "settings", "weight-decay",
                           "model", "size", "server", "updates-per-epoch", "total-updates"}) {
    all.erase(part);
  }
  flat.update(all);
  const std::pair<const char*, const char*> names[] = {{"mode", "server-mode"},
                                                       {"wire-format", "wire"}};
  for (const auto& [member, flag] : names) {
    flat[flag] = flat[member];
    flat.erase(member);
  }
  return flat;
}

// Of what the further settings do not name.
json without(json flat, const json& settings) {
  for (const auto& [name, value] : settings.items()) flat.erase(name);
  return flat;
}

void append(std::vector<std::string>& to, const std::vector<std::string>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

}  // namespace

std::string differences(const JobSpec& first, const JobSpec& other) {
  const json first_settings = membership::further_settings(first.settings);
  const json other_settings = membership::further_settings(other.settings);
  const json first_flat = flat_settings(first);
  const json other_flat = flat_settings(other);
  std::vector<std::string> found = storage::differing_settings(first_settings, other_settings);
  append(found, storage::differing_settings(without(first_flat, first_settings),
                                            without(other_flat, other_settings)));
  if (!found.empty()) return join(found, "; ");
  append(found, storage::differing_settings(first_flat, other_flat));
  const json a = to_json(first);
  const json b = to_json(other);
  const auto differ = [&](const char* member) { return a[member] != b[member]; };
  if (differ("model") || differ("size")) {
    found.emplace_back("the models differ in names, shapes or sharding");
  }
  if (differ("weight-decay")) found.emplace_back("--weight-decay differs");
  if (differ("updates-per-epoch") || differ("total-updates")) {
    found.push_back("the training sets differ: " + b["updates-per-epoch"].dump() +
                    " updates an epoch here and " + a["updates-per-epoch"].dump() +
                    " at the others");
  }
  return join(found, "; ");
}

std::string differences_from_told(const std::string& told, const JobSpec& spec) {
  json all = flat_settings(spec);
  all.update(membership::further_settings(spec.settings));
  return membership::differences_from_told(
      told, all, "where server " + std::to_string(spec.server) + " was started");
}

}  // namespace cohort::server
