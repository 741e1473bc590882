#include "compressors/registry.h"

#include "compressors/none.h"
#include "compressors/sign.h"

namespace cohort {
namespace {

std::unique_ptr<Compressor> make_none(const CompressorOptions&) { return std::make_unique<None>(); }

std::unique_ptr<Compressor> make_sign(const CompressorOptions&) { return std::make_unique<Sign>(); }

}  // namespace

const CompressorRegistry& compressors() {
  static const CompressorRegistry table(
      "compressor", {
                        {"none", "float32 as it is", make_none},
                        {"sign", "one bit an element, times the mean magnitude", make_sign},
                    });
  return table;
}

}  // namespace cohort
