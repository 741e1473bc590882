// The part of assemble.h that only gossip and compressed gradients need.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "compressors/registry.h"
#include "core/error.h"
#include "engine/assemble.h"
#include "gossip/stepsize.h"
#include "methods/method_traits.h"

namespace cohort::engine {

gossip::GossipSettings gossip_settings(const config::RunConfig& config) {
  gossip::GossipSettings settings;
  settings.method = config.method;
  settings.topology = config.topology;
  settings.graph.seed = static_cast<Seed>(config.seed);
  settings.graph.degree = static_cast<int>(config.topology_degree);
  settings.graph.file = config.topology_file;
  settings.compressor = config.compressor;
  settings.compression.seed = static_cast<Seed>(config.seed);
  settings.compression.ratio = config.compress_ratio;
  settings.compression.bits = static_cast<int>(config.quantize_bits);
  // Right on average instead of contracting, it would make what is fed back grow for ever.
  const auto& feeds_back = methods::traits_of(config.method).feeds_back;
  settings.compression.biased = config.biased || !feeds_back || feeds_back(config);
  if (config.consensus_stepsize != "auto") {
    const char* end = config.consensus_stepsize.data() + config.consensus_stepsize.size();
    const auto parsed = std::from_chars(config.consensus_stepsize.data(), end, settings.stepsize);
    if (parsed.ec != std::errc{} || parsed.ptr != end ||
        !(settings.stepsize > 0 && settings.stepsize <= 1)) {
      throw ConfigError("--consensus-stepsize is a number above 0 and at most 1, or auto; got '" +
                        config.consensus_stepsize + "'");
    }
  }
  settings.estimates_from_zero = config.estimates_start == "zero";
  settings.overlap = config.overlap;
  return settings;
}

namespace {

// A vector of `dimension` elements is to lose as much as the largest tensor does: the error of qsgd
// grows with the root of the number of elements, and falls with that of the levels.
int bits_for(int bits, int dimension, std::int64_t largest_tensor) {
  const double levels = std::exp2(bits) - 1;
  const double ratio = static_cast<double>(dimension) / static_cast<double>(largest_tensor);
  const double fewer = levels * std::sqrt(std::min(1.0, ratio));
  return std::clamp(static_cast<int>(std::floor(std::log2(fewer + 1))), 1, bits);
}

}  // namespace

void choose_stepsize(config::RunConfig& config, int workers, std::int64_t largest_tensor) {
  using Stepsize = methods::MethodTraits::Stepsize;
  const Stepsize rule = methods::traits_of(config.method).stepsize;
  if (rule == Stepsize::kNone || config.consensus_stepsize != "auto" || workers == 1) return;
  const gossip::GossipSettings settings = gossip_settings(config);
  const auto topology = gossip::make_topology(settings, workers);
  if (rule == Stepsize::kOneUncompressed) {
    if (!compressors::compressors().find(config.compressor).traits.exact) {
      throw ConfigError("--method " + config.method +
                        " with a compressor needs a --consensus-stepsize: for sign 0.01 was "
                        "published");
    }
    config.consensus_stepsize = "1";
    return;
  }
  gossip::StepsizeSearch search;
  search.seed = static_cast<Seed>(config.seed);
  search.dimension = std::clamp(100000 / workers, 200, 1000);  // a second or two at any size
  compressors::CompressorOptions compression = settings.compression;
  compression.bits = bits_for(compression.bits, search.dimension, largest_tensor);
  const auto compressor = compressors::compressors().make(settings.compressor, compression);
  const gossip::StepsizeResult found = gossip::tune_stepsize(*topology, *compressor, search);
  if (found.gamma == 0) {
    throw ConfigError("no --consensus-stepsize keeps " + std::to_string(workers) +
                      " workers together on --topology " + config.topology + " with --compressor " +
                      config.compressor + ": drop less (--compress-ratio), or use more bits");
  }
  config.consensus_stepsize = fmt::format("{:.3g}", found.gamma);
}

}  // namespace cohort::engine
