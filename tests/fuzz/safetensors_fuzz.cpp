// Any bytes at all are either refused with FileError or give views that lie inside them.
#include <cstdint>
#include <set>
#include <span>

#include "core/error.h"
#include "storage/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    const cohort::storage::ParsedSafetensors parsed = cohort::storage::parse_safetensors(bytes);
    std::set<std::string> names;
    std::size_t total = 0;
    for (const cohort::storage::TensorView& tensor : parsed.tensors) {
      COHORT_CHECK(names.insert(tensor.name).second, "a name twice");
      COHORT_CHECK(cohort::storage::array_bytes(tensor.dtype, tensor.shape) == tensor.bytes.size(),
                   "bytes do not match the shape");
      COHORT_CHECK(tensor.bytes.empty() ||
                       (tensor.bytes.data() >= bytes.data() &&
                        tensor.bytes.data() + tensor.bytes.size() <= bytes.data() + bytes.size()),
                   "a view outside the file");
      total += tensor.bytes.size();
    }
    COHORT_CHECK(total <= size, "more data than the file has");
  } catch (const cohort::FileError&) {
  }
  return 0;
}
