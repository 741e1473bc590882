#include "compressors/registry.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "compressors/bf16.h"
#include "compressors/fp16.h"
#include "compressors/none.h"
#include "compressors/qsgd.h"
#include "compressors/random_k.h"
#include "compressors/sign.h"
#include "compressors/top_k.h"
#include "config/fields.h"

namespace cohort::compressors {
namespace {

void check(const CompressorOptions& options) {
  if (!(options.ratio >= 0 && options.ratio < 1)) {
    char given[32];
    std::snprintf(given, sizeof given, "%g", options.ratio);
    throw ConfigError(
        std::string("a compressor's ratio is the share of the elements dropped, at ") +
        "least 0 and below 1, not " + given + "; the nearest valid one is " +
        (options.ratio >= 1 ? "0.999" : "0"));
  }
  if (options.bits < 1 || options.bits > 16) {
    throw ConfigError("a compressor's bits are 1 to 16, not " + std::to_string(options.bits) +
                      "; the nearest valid number is " +
                      std::to_string(std::clamp(options.bits, 1, 16)));
  }
}

template <class T>
std::unique_ptr<Compressor> make_plain(const CompressorOptions& options) {
  check(options);
  return std::make_unique<T>();
}

std::unique_ptr<Compressor> make_top_k(const CompressorOptions& options) {
  check(options);
  return std::make_unique<TopK>(options.ratio);
}

std::unique_ptr<Compressor> make_random_k(const CompressorOptions& options) {
  check(options);
  return std::make_unique<RandomK>(options.seed, options.ratio, options.biased);
}

std::unique_ptr<Compressor> make_qsgd(const CompressorOptions& options) {
  check(options);
  return std::make_unique<Qsgd>(options.seed, options.bits, options.biased);
}

config::ConfigField ratio_field() {
  return {"compress-ratio",
          config::setting_group::kGossip,
          &config::RunConfig::compress_ratio,
          "top-k, random-k: share of the elements that is dropped",
          0,
          0.9999999,
          {}};
}

config::ConfigField bits_field() {
  return {"quantize-bits",
          config::setting_group::kGossip,
          &config::RunConfig::quantize_bits,
          "qsgd: bits of a level",
          1,
          16};
}

config::ConfigField biased_field() {
  return {"biased",
          config::setting_group::kGossip,
          &config::RunConfig::biased,
          "qsgd, random-k: contracting, not right on average; always so in choco and deep-squeeze",
          0,
          0,
          {}};
}

}  // namespace

const CompressorRegistry& compressors() {
  static const CompressorRegistry table(
      "compressor", {
                        {"none", "float32 as it is", make_plain<None>, {.exact = true}},
                        {"fp16", "half precision, range to 65504", make_plain<Fp16>},
                        {"bf16", "the upper half of float32", make_plain<Bf16>},
                        {"sign", "one bit an element, times the mean magnitude", make_plain<Sign>},
                        {"top-k",
                         "the elements of largest magnitude and their indices",
                         make_top_k,
                         {{ratio_field()}}},
                        {"random-k",
                         "elements drawn alike by both sides, without indices",
                         make_random_k,
                         {{ratio_field(), biased_field()}}},
                        {"qsgd",
                         "levels of the norm, rounded at random, 1 to 16 bits",
                         make_qsgd,
                         {{bits_field(), biased_field()}}},
                    });
  return table;
}

}  // namespace cohort::compressors
