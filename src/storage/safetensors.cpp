#include "storage/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>

#include "core/error.h"
#include "storage/json.h"

namespace cohort::storage {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "arrays are written as they lie");

struct TypeEntry {
  std::string_view name;
  std::size_t bytes;
};

constexpr std::array<TypeEntry, 10> kTypes = {{{"F64", 8},
                                               {"F32", 4},
                                               {"F16", 2},
                                               {"BF16", 2},
                                               {"I64", 8},
                                               {"I32", 4},
                                               {"I16", 2},
                                               {"I8", 1},
                                               {"U8", 1},
                                               {"BOOL", 1}}};

constexpr std::uint64_t kMaximumHeaderBytes = 100'000'000;  // the reference implementation's
constexpr std::size_t kLengthBytes = 8;
constexpr int kHeaderDepth = 3;

// A tensor and where its data begins; `end` follows from the bytes.
struct Placed {
  TensorView tensor;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

[[noreturn]] void refuse(const std::string& name, const std::string& reason) {
  throw FileError("tensor '" + name + "' " + reason);
}

const json& field(const std::string& name, const json& entry, const char* key) {
  const auto found = entry.find(key);
  if (found == entry.end()) refuse(name, "has no \"" + std::string(key) + "\"");
  return *found;
}

std::vector<std::int64_t> read_shape(const std::string& name, const json& value) {
  if (!value.is_array()) refuse(name, "has a shape that is not a list");
  std::vector<std::int64_t> shape;
  shape.reserve(value.size());
  for (const json& dimension : value) {
    if (!dimension.is_number_unsigned() ||
        dimension.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max()) {
      refuse(name, "has the impossible dimension " + dimension.dump());
    }
    shape.push_back(dimension.get<std::int64_t>());
  }
  return shape;
}

Placed read_entry(const std::string& name, const json& entry, std::span<const std::byte> data) {
  if (!entry.is_object() || entry.size() != 3) {
    refuse(name, "is not described by dtype, shape and data_offsets");
  }
  const json& type = field(name, entry, "dtype");
  const auto dtype =
      type.is_string() ? dtype_from_name(type.get_ref<const std::string&>()) : std::nullopt;
  if (!dtype) refuse(name, "has the unknown dtype " + type.dump());
  std::vector<std::int64_t> shape = read_shape(name, field(name, entry, "shape"));

  const json& offsets = field(name, entry, "data_offsets");
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned()) {
    refuse(name, "has data_offsets that are not two whole numbers");
  }
  const auto begin = offsets[0].get<std::uint64_t>();
  const auto end = offsets[1].get<std::uint64_t>();
  if (begin > end || end > data.size()) {
    refuse(name, "lies at " + offsets.dump() + ", outside the " + std::to_string(data.size()) +
                     " bytes of data");
  }
  const std::optional<std::uint64_t> expected = array_bytes(*dtype, shape);
  if (!expected || *expected != end - begin) {
    refuse(name, "has " + std::to_string(end - begin) + " bytes, its shape asks for " +
                     (expected ? std::to_string(*expected) : "more than can be counted"));
  }
  return {{name, *dtype, std::move(shape), data.subspan(begin, end - begin)}, begin, end};
}

std::map<std::string, std::string> read_metadata(const json& value) {
  if (!value.is_object()) throw FileError("__metadata__ is not an object");
  std::map<std::string, std::string> metadata;
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) throw FileError("__metadata__ entry '" + key + "' is not a string");
    metadata.emplace(key, text.get<std::string>());
  }
  return metadata;
}

std::vector<TensorView> in_data_order(std::vector<Placed> placed, std::uint64_t data_bytes) {
  std::stable_sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::vector<TensorView> tensors;
  tensors.reserve(placed.size());
  std::uint64_t covered = 0;
  for (Placed& each : placed) {
    if (each.begin != covered) {
      refuse(each.tensor.name, "begins at byte " + std::to_string(each.begin) +
                                   " of the data, expected " + std::to_string(covered));
    }
    covered = each.end;
    tensors.push_back(std::move(each.tensor));
  }
  if (covered != data_bytes) {
    throw FileError("the tensors cover " + std::to_string(covered) + " of " +
                    std::to_string(data_bytes) + " bytes of data");
  }
  return tensors;
}

}  // namespace

std::string_view dtype_name(DType dtype) { return kTypes[static_cast<std::size_t>(dtype)].name; }

std::size_t dtype_bytes(DType dtype) { return kTypes[static_cast<std::size_t>(dtype)].bytes; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> array_bytes(DType dtype, std::span<const std::int64_t> shape) {
  std::int64_t bytes = static_cast<std::int64_t>(dtype_bytes(dtype));
  for (const std::int64_t dimension : shape) {
    if (dimension < 0 || __builtin_mul_overflow(bytes, dimension, &bytes)) return std::nullopt;
  }
  return static_cast<std::uint64_t>(bytes);
}

ParsedSafetensors parse_safetensors(std::span<const std::byte> bytes) {
  if (bytes.size() < kLengthBytes) {
    throw FileError("not a safetensors file: only " + std::to_string(bytes.size()) + " bytes");
  }
  std::uint64_t header_bytes = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    header_bytes |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  }
  const std::uint64_t available = bytes.size() - kLengthBytes;
  if (header_bytes > kMaximumHeaderBytes || header_bytes > available) {
    throw FileError("not a safetensors file, or truncated: a header of " +
                    std::to_string(header_bytes) + " bytes is announced, " +
                    std::to_string(available) + " bytes follow and " +
                    std::to_string(kMaximumHeaderBytes) + " are allowed");
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes,
                              header_bytes);
  if (!text.starts_with('{')) throw FileError("the header does not begin with '{'");
  const std::span<const std::byte> data = bytes.subspan(kLengthBytes + header_bytes);

  ParsedSafetensors parsed;
  std::vector<Placed> placed;
  const json header = parse_json(text, kHeaderDepth);
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      parsed.metadata = read_metadata(entry);
    } else {
      placed.push_back(read_entry(name, entry, data));
    }
  }
  parsed.tensors = in_data_order(std::move(placed), data.size());
  return parsed;
}

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
  SafetensorsFile file;
  file.content_ = read_file(path, std::numeric_limits<std::int64_t>::max());
  try {
    file.parsed_ = parse_safetensors(file.content_.bytes());
  } catch (const FileError& error) {
    throw FileError(path.string() + ": " + error.what());
  }
  for (std::size_t i = 0; i < file.parsed_.tensors.size(); ++i) {
    file.index_.emplace(file.parsed_.tensors[i].name, i);
  }
  return file;
}

const TensorView* SafetensorsFile::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &parsed_.tensors[found->second];
}

}  // namespace cohort::storage
