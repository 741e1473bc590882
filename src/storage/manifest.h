// What a checkpoint must contain, sealed by a hash.
//
//   {"sha256":"<hash of the body's text>","body":{
//     "format": 1, "step": 1200,
//     "files": {"model.safetensors": {"bytes": 812, "tensors": {
//                 "fc.weight": {"dtype": "F32", "shape": [10, 20], "sha256": "..."}}}, ...},
//     "state": {...}}}
//
// The bytes around the body are fixed, so a changed bit anywhere in the text is noticed.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.h"
#include "storage/safetensors.h"

namespace cohort::storage {

struct ManifestTensor {
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  std::string sha256;  // of the array's bytes

  friend bool operator==(const ManifestTensor&, const ManifestTensor&) = default;
};

struct ManifestFile {
  std::uint64_t bytes = 0;
  std::map<std::string, ManifestTensor> tensors;

  friend bool operator==(const ManifestFile&, const ManifestFile&) = default;
};

struct Manifest {
  Step step = 0;
  std::map<std::string, ManifestFile> files;
  nlohmann::json state;

  friend bool operator==(const Manifest&, const Manifest&) = default;
};

// Throws RunError when `state` holds what JSON cannot (see format_json).
std::string format_manifest(const Manifest& manifest);

// Throws FileError, without a file name in its message.
Manifest parse_manifest(std::string_view text);

}  // namespace cohort::storage
