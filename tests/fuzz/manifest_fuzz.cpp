// The first byte chooses: the rest is a whole manifest, or a body that is sealed here so that the
// fuzzer gets past the hash. What is accepted must survive being written and read again.
#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.h"
#include "storage/manifest.h"
#include "storage/sha256.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] != 'm') {
    text = R"({"sha256":")" + cohort::storage::sha256(text) + R"(","body":)" + text + "}\n";
  }
  try {
    const cohort::storage::Manifest manifest = cohort::storage::parse_manifest(text);
    COHORT_CHECK(
        cohort::storage::parse_manifest(cohort::storage::format_manifest(manifest)) == manifest,
        "a manifest changed by writing and reading it");
  } catch (const cohort::FileError&) {
  }
  return 0;
}
