// Any bytes in place of an idx file: an array as large as declared, or a FileError.
#include <cstdlib>

#include "core/error.h"
#include "data/idx.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const cohort::data::IdxArray array = cohort::data::parse_idx({data, size}, "input");
    std::int64_t product = 1;
    for (const std::int64_t dimension : array.dimensions) product *= dimension;
    if (static_cast<std::uint64_t>(product) != array.values.size()) std::abort();
  } catch (const cohort::FileError&) {
  }
  return 0;
}
