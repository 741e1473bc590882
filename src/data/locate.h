// Finds the files of the known data sets.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::data {

struct FoundFiles {
  std::filesystem::path folder;
  // MNIST and its relatives: images, labels. CIFAR: the batches. Image folders: the one folder.
  // Text: a file; under test the one to test with and the one for validation.
  std::vector<std::filesystem::path> train;
  std::vector<std::filesystem::path> test;
};

// The first folder that has all files of the set `name` (one of registry.h's, not "synthetic"):
// for each of `search` in order its usual sub-folders, then the folder itself. Throws FileError
// that lists every place looked at, what each lacked, and what to do.
//
// MNIST and Fashion-MNIST have the same file names; a folder whose own name names another set of
// the family is passed over.
FoundFiles locate(std::string_view name, std::span<const std::filesystem::path> search);

}  // namespace cohort::data
