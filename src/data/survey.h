// What data there are, and whether they are sound: the work behind `cohort data`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/registry.h"

namespace cohort::data {

struct DataReport {
  std::string name;
  bool found = false;
  std::filesystem::path folder;  // empty when not found, or generated
  std::int64_t train = 0;        // samples
  std::int64_t test = 0;
  SampleShape shape;
  std::int64_t classes = 0;
  std::string problem;             // empty: none that was looked for
  std::vector<std::string> notes;  // sound, but not as the original set is

  // Filled by verify() only.
  std::vector<std::string> class_names;
  std::vector<std::int64_t> train_histogram;  // samples of each class
  std::vector<std::int64_t> test_histogram;
  std::int64_t bad_files = 0;
  std::vector<std::string> bad_file_messages;  // of the first 20, each naming its file
};

// One report for each registered set, in their order. Reads headers and lists folders only, but
// texts, whose samples are words, as a whole.
std::vector<DataReport> survey(std::span<const std::filesystem::path> search);

// Reads and checks every file of request.name, and decodes every picture of an image folder.
// Problems are in the report; throws ConfigError only, for a request that makes no sense.
DataReport verify(const DataRequest& request);

}  // namespace cohort::data
