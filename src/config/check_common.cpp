#include <algorithm>
#include <initializer_list>

#include "config/run_config.h"
#include "core/error.h"

namespace cohort::config {
namespace {

bool is_one_of(const std::string& name, std::initializer_list<const char*> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void check_schedule(const RunConfig& config) {
  refuse_idle(config.base_batch > 0 && config.lr_scaling == "none", "base-batch", "--lr-scaling");
  refuse_idle(config.lr_scale_by != "world" && config.lr_scaling == "none", "lr-scale-by",
              "--lr-scaling");
  refuse_idle(config.warmup_from > 0 && config.warmup_epochs == 0, "warmup-from",
              "--warmup-epochs");
  refuse_idle(!config.lr_milestones.empty() &&
                  !is_one_of(config.schedule, {"multi-step", "piecewise", "fields"}),
              "lr-milestones", "--schedule multi-step, piecewise or fields");
  refuse_idle(!config.lr_values.empty() && !is_one_of(config.schedule, {"piecewise", "fields"}),
              "lr-values", "--schedule piecewise or fields");
  refuse_idle(!config.lr_shapes.empty() && config.schedule != "fields", "lr-shapes",
              "--schedule fields");
  refuse_idle((config.lr_mu != 1 || config.lr_alpha != 1) &&
                  !is_one_of(config.schedule, {"convex", "fields"}),
              "lr-mu and --lr-alpha", "--schedule convex or fields");
  if (config.lr_scaling != "none" && config.base_batch == 0) {
    throw ConfigError("--lr-scaling needs --base-batch: the batch that --lr was tuned for");
  }
}

}  // namespace

void refuse_idle(bool idle, const std::string& flag, const std::string& need) {
  if (idle) throw ConfigError("--" + flag + " does nothing without " + need + ": leave it out");
}

void check_common(const RunConfig& config) {
  check_schedule(config);
  refuse_idle(config.nesterov && config.optimizer != "sgd", "nesterov", "--optimizer sgd");
  refuse_idle(config.reshuffle && config.partition != "random", "reshuffle", "--partition random");
  refuse_idle(config.depth > 0 && config.model != "wideresnet" && config.model != "densenet",
              "depth", "--model wideresnet or densenet");
  refuse_idle(config.widen > 0 && config.model != "wideresnet", "widen", "--model wideresnet");
  refuse_idle(config.growth > 0 && config.model != "densenet", "growth", "--model densenet");
  if (config.iterations == 0 && config.start_epoch >= config.epochs) {
    throw ConfigError("--start-epoch " + std::to_string(config.start_epoch) +
                      " leaves nothing of --epochs " + std::to_string(config.epochs) +
                      ", which are counted from 0");
  }
}

}  // namespace cohort::config
