#include <algorithm>
#include <initializer_list>

#include "config/run_config.h"
#include "core/error.h"

namespace cohort {
namespace {

void only_with(bool idle, const std::string& flag, const std::string& need) {
  if (idle) throw ConfigError("--" + flag + " does nothing without " + need + ": leave it out");
}

bool is_one_of(const std::string& name, std::initializer_list<const char*> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void check_gossip(const RunConfig& config) {
  const RunConfig usual;
  const std::string& method = config.method;
  const bool gossip = is_gossip(method);
  const bool dgc = method == "dgc";
  const bool sparse = is_one_of(config.compressor, {"top-k", "random-k"});
  only_with(!gossip && config.topology != usual.topology, "topology", "a gossip method");
  only_with(config.topology_degree != 0 && config.topology != "random-regular", "topology-degree",
            "--topology random-regular");
  only_with(!config.topology_file.empty() && config.topology != "edges", "topology-file",
            "--topology edges");
  if (config.topology == "edges" && config.topology_file.empty()) {
    throw ConfigError("--topology edges needs --topology-file: a file of lines `i j [weight]`");
  }
  only_with(!gossip && !dgc && config.compressor != usual.compressor, "compressor",
            "a gossip method or dgc");
  only_with(!sparse && config.compress_ratio != usual.compress_ratio, "compress-ratio",
            "--compressor top-k or random-k");
  only_with(config.compressor != "qsgd" && config.quantize_bits != usual.quantize_bits,
            "quantize-bits", "--compressor qsgd");
  only_with(config.biased && !is_one_of(config.compressor, {"qsgd", "random-k"}), "biased",
            "--compressor qsgd or random-k");
  only_with(config.consensus_stepsize != usual.consensus_stepsize &&
                !is_one_of(method, {"choco", "deep-squeeze"}),
            "consensus-stepsize", "--method choco or deep-squeeze");
  only_with(config.estimates_start != usual.estimates_start && method != "choco", "estimates-start",
            "--method choco");
  only_with(!gossip && !config.overlap, "no-overlap", "a gossip method");
  only_with(!gossip && config.eval_workers, "eval-workers", "a gossip method");
  only_with(method != "power-sgd" && config.power_rank != usual.power_rank, "power-rank",
            "--method power-sgd");
  only_with(method != "sign-sgd" && config.majority_vote, "majority-vote", "--method sign-sgd");
  only_with(!dgc && !config.mask_momentum, "no-mask-momentum", "--method dgc");
  only_with(!dgc && config.clip_tensor > 0, "clip-tensor", "--method dgc");
  only_with(!dgc && config.compress_warmup_epochs > 0, "compress-warmup-epochs", "--method dgc");
  only_with(config.compress_warmup_epochs == 0 &&
                config.compress_warmup_values != usual.compress_warmup_values,
            "compress-warmup-values", "--compress-warmup-epochs");
  only_with(config.reshuffle && config.partition != "random", "reshuffle", "--partition random");
  only_with(config.lr_scale_by != "world" && config.lr_scaling == "none", "lr-scale-by",
            "--lr-scaling");
  if (config.lr_scale_by == "graph" && !gossip) {
    throw ConfigError("--lr-scale-by graph counts neighbours, which --method " + method +
                      " has not: use world");
  }
  only_with(config.compress_warmup_epochs > 0 && !sparse, "compress-warmup-epochs",
            "--compressor top-k or random-k");
  if (dgc && !is_one_of(config.compressor, {"top-k", "random-k", "qsgd"})) {
    throw ConfigError("--method dgc takes --compressor top-k, random-k or qsgd, not " +
                      config.compressor + (config.compressor == "sign" ? ": use ef-sign" : ""));
  }
}

void check_swamp(const RunConfig& config) {
  const RunConfig usual;
  const bool swamp = config.method == "swamp";
  const bool validated = swamp && config.swamp_server == "validated";
  const std::string with_swamp = "--method swamp";
  only_with(!swamp && config.swamp_server != usual.swamp_server, "swamp-server", with_swamp);
  only_with(!swamp && config.free_trial_steps != usual.free_trial_steps, "free-trial-steps",
            with_swamp);
  only_with(!swamp && config.pull_probability != usual.pull_probability, "pull-probability",
            with_swamp);
  only_with(!swamp && config.crossover_probability != 0, "crossover-probability", with_swamp);
  only_with(!validated && config.validation_size != usual.validation_size, "validation-size",
            with_swamp + " --swamp-server validated");
  only_with(!validated && config.swamp_hysteresis != usual.swamp_hysteresis, "swamp-hysteresis",
            with_swamp + " --swamp-server validated");
  only_with((!swamp || validated) && config.check_samples != usual.check_samples, "check-samples",
            with_swamp + " --swamp-server fifo or latest");
  if (!swamp) return;
  if (config.partition != "none" && config.partition != "all") {
    throw ConfigError(
        "--method swamp lets every worker go through all training data: leave out "
        "--partition " +
        config.partition);
  }
  if (config.accumulate > 1) {
    throw ConfigError("--method swamp takes one forward pass a step: leave out --accumulate");
  }
}

// The default is meant for those who have use for it, and 0 is what the others do.
void check_comparisons(const RunConfig& config) {
  if (config.check_replicas == RunConfig{}.check_replicas || config.check_replicas == 0) return;
  if (is_gossip(config.method) || config.method == "swamp") {
    throw ConfigError("--check-replicas looks for models that should be equal, but with --method " +
                      config.method + " every worker has a model of its own: leave it out");
  }
  only_with(!is_one_of(config.method, {"all-reduce", "data-parallel"}) &&
                !compresses_gradients(config.method),
            "check-replicas", "--method all-reduce, data-parallel or a compressed method");
}

bool exchanges_rarely(const std::string& method) {
  return method == "all-reduce" || is_gossip(method) || compresses_gradients(method);
}

}  // namespace

bool is_gossip(const std::string& method) {
  return is_one_of(method, {"d-psgd", "choco", "dcd", "ecd", "deep-squeeze"});
}

bool compresses_gradients(const std::string& method) {
  return is_one_of(method, {"ef-sign", "sign-sgd", "dgc", "power-sgd"});
}

void check_config(const RunConfig& config) {
  // Dialects set members without asking the table.
  RunConfig copy = config;
  for (const ConfigField& field : config_fields())
    set_field(copy, field, field_text(config, field));
  check_swamp(config);
  check_gossip(config);
  check_comparisons(config);
  only_with(config.nesterov && config.optimizer != "sgd", "nesterov", "--optimizer sgd");
  only_with(config.average_every > 1 && !exchanges_rarely(config.method), "average-every",
            "--method all-reduce or a gossip or compressed method");
  const bool servers = config.method == "parameter-server";
  const std::string with_servers = "--method parameter-server";
  const bool swamp = config.method == "swamp";
  only_with(!servers && !swamp && config.servers != "1", "servers", with_servers);
  only_with(!servers && config.server_mode != "sync", "server-mode", with_servers);
  only_with(!servers && config.wire != "float32", "wire", with_servers);
  only_with(!servers && !swamp && config.rank >= 0, "rank", with_servers);
  only_with(config.backup_workers > 0 && !(servers && config.server_mode == "sync"),
            "backup-workers", with_servers + " --server-mode sync");
  only_with(config.delay_compensation > 0 && !(servers && config.server_mode != "sync"),
            "delay-compensation", with_servers + " --server-mode async or ssp");
  if (config.start_epoch > 0 && servers) {
    throw ConfigError(
        "--start-epoch: parameter servers count the epochs by themselves, from 0; leave it out, or "
        "use "
        "another --method");
  }
  if (config.iterations == 0 && config.start_epoch >= config.epochs) {
    throw ConfigError("--start-epoch " + std::to_string(config.start_epoch) +
                      " leaves nothing of --epochs " + std::to_string(config.epochs) +
                      ", which are counted from 0");
  }
  if (servers && config.clip_norm > 0) {
    throw ConfigError(
        "--clip-norm needs the whole gradient in one place, which no parameter "
        "server has: leave it out, or use --method all-reduce");
  }
  if ((servers || swamp) && config.batch_norm != "rank-0") {
    throw ConfigError("--batch-norm " + config.batch_norm +
                      " needs workers that keep in step, which --method " + config.method +
                      "'s do not: leave it out");
  }
  only_with(config.base_batch > 0 && config.lr_scaling == "none", "base-batch", "--lr-scaling");
  only_with(config.warmup_from > 0 && config.warmup_epochs == 0, "warmup-from", "--warmup-epochs");
  only_with(!config.lr_milestones.empty() &&
                !is_one_of(config.schedule, {"multi-step", "piecewise", "fields"}),
            "lr-milestones", "--schedule multi-step, piecewise or fields");
  only_with(!config.lr_values.empty() && !is_one_of(config.schedule, {"piecewise", "fields"}),
            "lr-values", "--schedule piecewise or fields");
  only_with(!config.lr_shapes.empty() && config.schedule != "fields", "lr-shapes",
            "--schedule fields");
  only_with((config.lr_mu != 1 || config.lr_alpha != 1) &&
                !is_one_of(config.schedule, {"convex", "fields"}),
            "lr-mu and --lr-alpha", "--schedule convex or fields");
  only_with(config.depth > 0 && config.model != "wideresnet" && config.model != "densenet", "depth",
            "--model wideresnet or densenet");
  only_with(config.widen > 0 && config.model != "wideresnet", "widen", "--model wideresnet");
  only_with(config.growth > 0 && config.model != "densenet", "growth", "--model densenet");
  if (config.lr_scaling != "none" && config.base_batch == 0) {
    throw ConfigError("--lr-scaling needs --base-batch: the batch that --lr was tuned for");
  }
}

}  // namespace cohort
