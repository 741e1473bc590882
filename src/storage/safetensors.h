// The safetensors format: named arrays in one file, nothing executable.
//
//   8 bytes        length n of the header, little-endian
//   n bytes        a JSON object {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0,
//   24]},
//                  ..., "__metadata__": {"key": "text"}}, padded with spaces
//   the rest       the arrays, row-major and little-endian, at those offsets
//
// Read strictly, as the reference implementation does: known types, lengths that match the shapes,
// arrays that cover the data without holes or overlaps, no name twice. Damage is a FileError; it is
// never a crash and never an allocation larger than the file warrants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/file.h"

namespace cohort::storage {

enum class DType { kF64, kF32, kF16, kBF16, kI64, kI32, kI16, kI8, kU8, kBool };

std::string_view dtype_name(DType dtype);  // as in the file: "F32"
std::optional<DType> dtype_from_name(std::string_view name);
std::size_t dtype_bytes(DType dtype);  // per element

// The length of an array in bytes, or nothing when it does not fit or a dimension is negative.
std::optional<std::uint64_t> array_bytes(DType dtype, std::span<const std::int64_t> shape);

// An array somebody else owns. `bytes` need not be aligned for its type: copy, do not cast.
struct TensorView {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;  // empty for a scalar
  std::span<const std::byte> bytes;
};

struct ParsedSafetensors {
  std::vector<TensorView> tensors;  // in the order of their data; views into the given bytes
  std::map<std::string, std::string> metadata;
};

// Throws FileError, without a file name in its message.
ParsedSafetensors parse_safetensors(std::span<const std::byte> bytes);

// A file read and checked; owns the bytes its views show. Moving it keeps the views valid.
//
// Read rather than mapped: a mapped file that somebody truncates kills the process (SIGBUS), and
// could change between the check of its hashes and its use. The price is one copy of the file.
class SafetensorsFile {
 public:
  static SafetensorsFile open(const std::filesystem::path& path);

  const std::vector<TensorView>& tensors() const { return parsed_.tensors; }
  const std::map<std::string, std::string>& metadata() const { return parsed_.metadata; }
  std::uint64_t size_bytes() const { return content_.size; }
  const TensorView* find(std::string_view name) const;  // nullptr when there is none

 private:
  SafetensorsFile() = default;

  FileContent content_;
  ParsedSafetensors parsed_;
  std::map<std::string, std::size_t, std::less<>> index_;
};

// Writes `tensors` in their order, straight from their bytes. The caller syncs. Names are distinct
// and are not "__metadata__"; each array has the bytes its shape asks for.
void write_safetensors(FileWriter& writer, std::span<const TensorView> tensors,
                       const std::map<std::string, std::string>& metadata = {});

// The same as a durable file of its own, replacing `path` atomically.
void save_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                      const std::map<std::string, std::string>& metadata = {});

}  // namespace cohort::storage
