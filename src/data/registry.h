// The data sets by name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/registry.h"
#include "core/types.h"
#include "data/dataset.h"

namespace cohort::data {

// How a text is cut; see text.h.
struct TextRequest {
  std::int64_t columns = 1;        // of the training text
  std::int64_t test_columns = 10;  // at most
  std::int64_t piece = 35;         // words that a column is read on by at once
  bool lowercase = false;
  bool evaluate_validation = false;  // the test set is the text for validation
};

// Folders to look for files in, in this order.
using SearchPath = std::vector<std::filesystem::path>;

struct DataRequest {
  std::string name;
  SearchPath search;

  // Leave out the first so many training samples, which others use to validate.
  std::int64_t train_skip = 0;
  // Use only the first so many samples of the rest; 0: all. In an image folder the first are
  // counted taking one picture of each class in turn. `synthetic` makes that many, 60,000 and
  // 10,000 for 0. In a text all three count words.
  std::int64_t train_size = 0;
  std::int64_t test_size = 0;

  // Of the training set: none, crop-flip (shift by up to 4 pixels and mirror), resized-crop (image
  // folders only). auto: crop-flip for CIFAR, resized-crop for image folders, none for the rest.
  std::string augment = "auto";
  // Decode a JPEG picture at 1/2, 1/4 or 1/8 of its size where that still leaves as many pixels as
  // are wanted: faster, but not the pixels that a decoder of the whole picture gives.
  bool fast_decode = false;
  // none ([0, 1]), half ([-1, 1]), auto: the set's usual mean and deviation.
  std::string normalize = "auto";
  // Resize to a square of this side; 0: the set's own size, for image folders 224.
  std::int64_t image_size = 0;

  SampleShape synthetic_shape{1, 28, 28};
  std::int64_t synthetic_classes = 10;
  TextRequest text = {};
  Seed seed = 0;
};

struct DataSplits {
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> test;
  std::filesystem::path found_at;  // empty for generated data
  std::vector<std::string> notes;  // what the user should know of the files, one line each
};

// fashion-mnist, mnist, cifar-10, cifar-100, image-folder, image-list, wikitext-2, ptb, text,
// synthetic. make(name, request) reads the files (pictures of image folders are only listed) and
// throws FileError when one is missing or damaged, ConfigError when the request does not suit the
// set.
using DataRegistry = Registry<DataSplits, const DataRequest&>;
const DataRegistry& data_sets();

// data_sets().make(request.name, request).
std::unique_ptr<DataSplits> load_data(const DataRequest& request);

const std::vector<std::string>& augment_names();
const std::vector<std::string>& normalize_names();

}  // namespace cohort::data
