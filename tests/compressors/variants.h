// Every registered compressor, with the settings that change what it does.
#pragma once

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "compressors/model_codec.h"
#include "compressors/registry.h"

namespace cohort::compressors {

struct Variant {
  std::string label;
  std::string name;
  CompressorOptions options;

  std::unique_ptr<Compressor> make(Seed seed = 1) const {
    CompressorOptions seeded = options;
    seeded.seed = seed;
    return compressors().make(name, seeded);
  }
  friend void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.label; }
};

inline std::vector<Variant> compressor_variants() {
  std::vector<Variant> all;
  const auto add = [&all](const std::string& label, const std::string& name,
                          const CompressorOptions& options) {
    std::string identifier = label;
    std::replace(identifier.begin(), identifier.end(), '-', '_');
    all.push_back({identifier, name, options});
  };
  for (const std::string& name : compressors().names()) {
    add(name, name, {});
    add(name + "_biased", name, {.biased = true});
    if (name == "top-k" || name == "random-k") {
      add(name + "_keeps_all", name, {.ratio = 0});
      add(name + "_keeps_half", name, {.ratio = 0.5});
      add(name + "_keeps_most_biased", name, {.ratio = 0.2, .biased = true});
      add(name + "_keeps_few", name, {.ratio = 0.9999});
    }
    if (name == "qsgd") {
      for (const int bits : {1, 2, 4, 15, 16}) {
        add(name + std::to_string(bits), name, {.bits = bits});
        add(name + std::to_string(bits) + "_biased", name, {.bits = bits, .biased = true});
      }
    }
  }
  return all;
}

// Tensors of these sizes, one after another.
inline std::vector<Range> tensors_of(const std::vector<std::int64_t>& sizes) {
  std::vector<Range> tensors;
  std::int64_t begin = 0;
  for (const std::int64_t size : sizes) {
    tensors.push_back({begin, size});
    begin += size;
  }
  return tensors;
}

}  // namespace cohort::compressors
