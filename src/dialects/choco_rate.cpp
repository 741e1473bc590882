#include "dialects/choco_rate.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/error.h"
#include "core/text.h"
#include "methods/settings.h"

namespace cohort::dialects {
namespace {

constexpr double kMaxRate = 1e6;
constexpr std::int64_t kMaxEpochs = 1'000'000;

std::optional<double> as_number(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (text.empty() || parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
  return value;
}

// One object per call.
class RateTranslator {
 public:
  RateTranslator(ChocoFlags& flags, ChocoRevision revision, config::RunConfig& config)
      : flags_(flags), late_(revision == ChocoRevision::kLate), config_(config) {}

  void run() {
    if (late_) {
      set_late();
    } else {
      set_early();
    }
  }

 private:
  void set_late() {
    const std::string scheme = flags_.text("lr_schedule_scheme");
    if (scheme == "strict") return set_strict();
    if (scheme == "custom_one_cycle") return set_one_cycle();
    if (scheme == "custom_convex_decay") return set_convex();
    if (scheme == "reduce_on_plateau") {
      throw ConfigError(
          "--lr_schedule_scheme reduce_on_plateau did nothing in the original and is not here: use "
          "custom_multistep with --lr_change_epochs");
    }
    if (!scheme.empty() && scheme != "custom_multistep") {
      throw ConfigError(
          unknown_name("--lr_schedule_scheme", scheme,
                       std::vector<std::string>{"strict", "custom_one_cycle", "custom_multistep",
                                                "custom_convex_decay"}));
    }
    set_scaled_rate("graph");
    if (set_steps("lr_change_epochs")) config_.lr_gamma = 1 / late_divisor();
    if (!flags_.truth("lr_warmup")) return;
    const auto epochs =
        flags_.given("lr_warmup_epochs") ? flags_.whole("lr_warmup_epochs", 0, kMaxEpochs) : 5;
    set_warmup(flags_.number("lr", 0, kMaxRate), epochs);
  }

  double late_divisor() {
    const double divisor = flags_.given("lr_decay") ? flags_.number("lr_decay", 1e-9, 1e9) : 10;
    if (divisor >= 1) return divisor;
    throw ConfigError(fmt::format(
        "--lr_decay {} divides the rate with --lr_change_epochs, which would make it larger: give "
        "{}, or --like early, where it multiplies",
        divisor, 1 / divisor));
  }

  double early_factor() {
    const double factor = flags_.given("lr_decay") ? flags_.number("lr_decay", 0, 1e9) : 0.1;
    if (factor <= 1) return factor;
    throw ConfigError(fmt::format(
        "--lr_decay {} multiplies the rate with --lr_scheduler: give {}, or --like late, where it "
        "divides",
        factor, 1 / factor));
  }

  void set_early() {
    set_scaled_rate("world");
    const std::string scheduler = flags_.text("lr_scheduler");
    if (scheduler == "MultiStepLR") {
      if (set_steps("lr_milestones")) config_.lr_gamma = early_factor();
    } else if (scheduler == "ExponentialLR") {
      config_.schedule = "exponential";
      config_.lr_gamma = early_factor();
    } else {
      throw ConfigError(
          "--lr_scheduler takes MultiStepLR or ExponentialLR, got '" + scheduler +
          (scheduler == "ReduceLROnPlateau" ? "', which the original has not either" : "'"));
    }
    if (!flags_.truth("lr_warmup")) return;
    const char* from = flags_.given("lr_scaleup_init_lr") ? "lr_scaleup_init_lr" : "lr";
    set_warmup(flags_.number(from, 0, kMaxRate), early_warmup_epochs());
  }

  // As many epochs as the rate is scaled by, within the bound.
  std::int64_t early_warmup_epochs() {
    if (flags_.given("lr_warmup_epochs")) return flags_.whole("lr_warmup_epochs", 0, kMaxEpochs);
    if (config_.lr_scale_by == "graph") {
      throw ConfigError("--lr_scaleup_factor graph needs --lr_warmup_epochs");
    }
    const std::int64_t bound = flags_.whole("lr_warmup_epochs_upper_bound", 0, kMaxEpochs);
    return std::min<std::int64_t>(bound, static_cast<std::int64_t>(std::ceil(factor_)));
  }

  // lr is for base_batch_size samples; a worker's batch and what is counted with it make it larger.
  void set_scaled_rate(const std::string& usual_factor) {
    const double lr = flags_.number("lr", 0, kMaxRate);
    const std::int64_t base = flags_.given("base_batch_size")
                                  ? flags_.whole("base_batch_size", 1, 1'000'000'000)
                                  : config_.batch;
    const double own = lr / static_cast<double>(base) * static_cast<double>(config_.batch);
    config_.lr = own;
    if (!flags_.truth("lr_scaleup")) return;
    const auto count_workers = [&](const char* scaling, const char* by) {
      config_.lr = lr;
      config_.lr_scaling = scaling;
      config_.lr_scale_by = by;
      config_.base_batch = base;
      factor_ = static_cast<double>(std::max<std::int64_t>(1, config_.workers));
    };
    if (late_) {
      const std::string type = flags_.text("lr_scaleup_type");
      if (type == "sqrt") return count_workers("sqrt", "world");
      if (type != "linear") {
        throw ConfigError("--lr_scaleup_type takes linear or sqrt, got '" + type + "'");
      }
    }
    std::string factor = flags_.text("lr_scaleup_factor");
    if (factor.empty()) factor = usual_factor;
    if (factor == "world" || factor == "graph") {
      // Without a graph all workers are neighbours.
      const bool graph = factor == "graph" && methods::uses(config_.method, "topology");
      return count_workers("linear", graph ? "graph" : "world");
    }
    const std::optional<double> number = as_number(factor);
    if (!number || !(*number > 0)) {
      throw ConfigError("--lr_scaleup_factor takes graph, world or a number above 0, got '" +
                        factor + "'");
    }
    factor_ = *number;
    config_.lr = own * factor_;
  }

  // False when the rate stays the same.
  bool set_steps(const char* flag) {
    config_.lr_milestones = flags_.numbers(flag);
    config_.schedule = config_.lr_milestones.empty() ? "constant" : "multi-step";
    return !config_.lr_milestones.empty();
  }

  void set_warmup(double from, std::int64_t epochs) {
    if (epochs == 0) return;
    config_.warmup_epochs = static_cast<double>(epochs);
    config_.warmup_from = from;
  }

  void set_strict() {
    const std::string fields = flags_.text("lr_fields");
    if (fields.empty()) {
      throw ConfigError("--lr_schedule_scheme strict needs --lr_fields: from,to/from,to/...");
    }
    for (const std::string& pair : split(fields, '/')) {
      const std::vector<double> rates = parse_choco_numbers("lr_fields", pair);
      if (rates.size() != 2 || rates[0] < 0 || rates[1] < 0) {
        throw ConfigError("--lr_fields takes two rates for each field, from,to/from,to; got '" +
                          pair + "'");
      }
      config_.lr_values.insert(config_.lr_values.end(), rates.begin(), rates.end());
    }
    config_.lr_milestones = flags_.numbers("lr_change_epochs");
    config_.lr_shapes = flags_.numbers("lr_scale_indicators");
    const std::size_t count = config_.lr_values.size() / 2;
    if (config_.lr_milestones.size() + 1 != count || config_.lr_shapes.size() != count) {
      throw ConfigError(fmt::format(
          "--lr_fields has {} fields: they need {} of --lr_change_epochs between them and {} of "
          "--lr_scale_indicators",
          count, count - 1, count));
    }
    const auto& shapes = config_.lr_shapes;
    if (std::find(shapes.begin(), shapes.end(), 2.0) != shapes.end()) read_convex();
    set_fields();
  }

  void set_one_cycle() {
    const double low = flags_.number("lr_onecycle_low", 0, kMaxRate);
    const double high = flags_.number("lr_onecycle_high", 0, kMaxRate);
    const double last = flags_.number("lr_onecycle_extra_low", 0, kMaxRate);
    const std::int64_t cycle = flags_.whole("lr_onecycle_num_epoch", 2, kMaxEpochs);
    if (cycle > config_.epochs) {
      throw ConfigError(fmt::format("--lr_onecycle_num_epoch {} is more than --num_epochs {}",
                                    cycle, config_.epochs));
    }
    config_.lr_values = {low, high, high, low, low, last};
    const std::int64_t peak = cycle / 2;
    config_.lr_milestones = {static_cast<double>(peak), static_cast<double>(cycle)};
    set_fields();
  }

  // What is counted is --num_epochs, also where --num_iterations ends the run earlier.
  void set_fields() {
    config_.schedule = "fields";
    config_.lr_milestones.push_back(static_cast<double>(config_.epochs));
    config_.lr = *std::max_element(config_.lr_values.begin(), config_.lr_values.end());
  }

  void set_convex() {
    read_convex();
    config_.schedule = "convex";
    config_.lr = config_.lr_gamma / (config_.lr_mu * config_.lr_alpha);
  }

  void read_convex() {
    for (const char* flag : {"lr_gamma", "lr_mu", "lr_alpha"}) {
      if (flags_.given(flag)) continue;
      throw ConfigError(
          fmt::format("the convex rate is lr_gamma / (lr_mu (lr_alpha + epoch)): give --{}", flag));
    }
    config_.lr_gamma = flags_.number("lr_gamma", 0, kMaxRate);
    config_.lr_mu = flags_.number("lr_mu", 1e-12, 1e12);
    config_.lr_alpha = flags_.number("lr_alpha", 1e-12, 1e12);
  }

  ChocoFlags& flags_;
  const bool late_;
  config::RunConfig& config_;
  double factor_ = 1;  // that the rate is scaled by
};

}  // namespace

void set_choco_rate(ChocoFlags& flags, ChocoRevision revision, config::RunConfig& config) {
  RateTranslator(flags, revision, config).run();
}

double choco_peak_rate(const config::RunConfig& config, int neighbourhood) {
  if (config.lr_scaling == "none") return config.lr;
  const auto workers = config.lr_scale_by == "graph" ? static_cast<std::int64_t>(neighbourhood)
                                                     : std::max<std::int64_t>(1, config.workers);
  const double ratio = static_cast<double>(config.batch) * static_cast<double>(workers) /
                       static_cast<double>(config.base_batch);
  return config.lr * (config.lr_scaling == "sqrt" ? std::sqrt(ratio) : ratio);
}

}  // namespace cohort::dialects
