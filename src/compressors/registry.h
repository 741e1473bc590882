// All compressors by name. The conformance tests run over this table.
#pragma once

#include "compressors/compressor.h"
#include "core/registry.h"

namespace cohort {

// The settings that compressors share; each takes what it knows.
struct CompressorOptions {
  Seed seed = 0;  // of the random numbers of those that draw any
  Rank rank = 0;  // so that ranks draw different ones
};

using CompressorRegistry = Registry<Compressor, const CompressorOptions&>;

const CompressorRegistry& compressors();

}  // namespace cohort
