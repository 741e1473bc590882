// The idx format of MNIST and its relatives, plain or gzip-compressed (told apart by content).
//
//   0 0 type rank | rank sizes, 32-bit big-endian | the values, last dimension fastest
//
// Only type 8 (unsigned byte) is read. Readers are strict: a file that is too short, too long or
// damaged is a FileError, and nothing is allocated that the header does not declare and the
// file's own length does not make possible; for compressed values only as they are unpacked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "data/image_array.h"

namespace cohort::data {

inline constexpr std::uint64_t kIdxLimitBytes = std::uint64_t{2} << 30;

struct IdxArray {
  std::vector<std::int64_t> dimensions;  // 1 to 4 of them, each > 0
  std::vector<std::uint8_t> values;
};

// `name` stands for the file in messages.
IdxArray parse_idx(std::span<const std::uint8_t> bytes, const std::string& name);
std::vector<std::int64_t> parse_idx_dimensions(std::span<const std::uint8_t> bytes,
                                               const std::string& name);

IdxArray read_idx(const std::filesystem::path& path);
std::vector<std::int64_t> read_idx_dimensions(const std::filesystem::path& path);

// A set of one-channel images with one label each below `classes`.
ImageArray read_idx_images(const std::filesystem::path& images, const std::filesystem::path& labels,
                           int classes);

}  // namespace cohort::data
