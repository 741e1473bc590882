// The binary versions of CIFAR-10 and CIFAR-100: fixed records of label bytes followed by 3,072
// bytes of planar RGB, 32 x 32. CIFAR-100 has two label bytes, coarse (20) and fine (100); the
// fine one is the label.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "data/image_array.h"

namespace cohort::data {

enum class CifarKind { kTen, kHundred };

inline constexpr std::int64_t kCifarPixels = std::int64_t{3} * 32 * 32;
std::int64_t cifar_record_bytes(CifarKind kind);
const std::vector<std::string>& cifar_class_names(CifarKind kind);

// Appends the records of one file to `into`, whose shape becomes 3 x 32 x 32. Throws FileError,
// leaving `into` as it was, when the length is not a positive multiple of the record or a label is
// out of range. `name` stands for the file in messages.
void parse_cifar(std::span<const std::uint8_t> bytes, CifarKind kind, const std::string& name,
                 ImageArray& into);

// The records of several files, one file after the other.
ImageArray read_cifar(std::span<const std::filesystem::path> files, CifarKind kind);

}  // namespace cohort::data
