// All compressors by name. The conformance tests run over this table.
#pragma once

#include "compressors/compressor.h"
#include "config/part_traits.h"
#include "core/registry.h"

namespace cohort::compressors {

// The settings that compressors share; each takes what it knows. They must be equal on all ranks.
// The factories throw ConfigError for values out of range, whether they use them or not.
struct CompressorOptions {
  Seed seed = 0;        // of the random numbers of those that draw any
  double ratio = 0.99;  // share of the elements that top-k and random-k drop, in [0, 1)
  int bits = 8;         // of qsgd's levels, 1 to 16
  bool biased = false;  // random-k and qsgd: shrink the result so that it contracts, instead of
                        // making its expectation the vector itself
};

using CompressorRegistry =
    RegistryWithTraits<config::PartTraits, Compressor, const CompressorOptions&>;

const CompressorRegistry& compressors();

}  // namespace cohort::compressors
