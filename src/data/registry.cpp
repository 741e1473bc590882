#include "data/registry.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/text.h"
#include "data/array_dataset.h"
#include "data/cifar.h"
#include "data/idx.h"
#include "data/image_folder.h"
#include "data/image_list.h"
#include "data/locate.h"
#include "data/synthetic.h"
#include "data/text_sets.h"

namespace cohort::data {
namespace {

const std::vector<std::string> kFashionClasses = {"T-shirt/top", "Trouser",   "Pullover", "Dress",
                                                  "Coat",        "Sandal",    "Shirt",    "Sneaker",
                                                  "Bag",         "Ankle boot"};
const std::vector<std::string> kDigits = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};

// How the two training sets begin: enough to tell one from the other when their files, which
// have equal names and sizes, lie in the wrong folder.
constexpr std::array<std::uint8_t, 10> kMnistBegins = {5, 0, 4, 1, 9, 2, 1, 3, 1, 4};
constexpr std::array<std::uint8_t, 10> kFashionBegins = {9, 0, 0, 3, 0, 2, 7, 2, 5, 5};

void check_choice(std::string_view kind, const std::string& choice,
                  const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), choice) == known.end()) {
    throw ConfigError(unknown_name(kind, choice, known));
  }
}

void check_request(const DataRequest& request) {
  check_choice("augmentation", request.augment, augment_names());
  check_choice("normalisation", request.normalize, normalize_names());
  if (request.image_size < 0 || request.image_size > 4096) {
    throw ConfigError("image size " + std::to_string(request.image_size) +
                      ": expected 1 to 4096, or 0 for the data set's own");
  }
  if (request.train_skip < 0 || request.train_size < 0 || request.test_size < 0) {
    throw ConfigError("the number of samples to use cannot be negative; 0 means all");
  }
}

// How many of `available` samples to use.
std::int64_t wanted(std::int64_t asked, std::int64_t available, const DataRequest& request,
                    std::string_view split) {
  if (asked > available) {
    throw ConfigError("data set '" + request.name + "' has " + std::to_string(available) + " " +
                      std::string(split) + " samples, fewer than the " + std::to_string(asked) +
                      " asked for");
  }
  return asked == 0 ? available : asked;
}

// Of `available` training samples, how many come before those to use.
std::int64_t left_out(std::int64_t available, const DataRequest& request) {
  if (request.train_skip < available) return request.train_skip;
  throw ConfigError("data set '" + request.name + "' has " + std::to_string(available) +
                    " training samples: leaving out the first " +
                    std::to_string(request.train_skip) + " leaves none");
}

Normalization choose_normalization(const DataRequest& request, Normalization usual) {
  const auto channels = static_cast<std::int64_t>(usual.mean.size());
  if (request.normalize == "none") return Normalization::none(channels);
  if (request.normalize == "half") return Normalization::half(channels);
  return usual;
}

void drop_first(ImageArray& images, std::int64_t count) {
  images.labels.erase(images.labels.begin(), images.labels.begin() + count);
  images.pixels.erase(images.pixels.begin(), images.pixels.begin() + count * images.shape.numel());
}

std::unique_ptr<Dataset> make_array(ImageArray images, std::int64_t count,
                                    const ArrayOptions& options) {
  images.labels.resize(static_cast<std::size_t>(count));
  images.pixels.resize(static_cast<std::size_t>(count * images.shape.numel()));
  images.pixels.shrink_to_fit();
  return std::make_unique<ArrayDataset>(std::move(images), options);
}

// Test images are never augmented.
std::unique_ptr<DataSplits> make_arrays(ImageArray train, ImageArray test, ArrayOptions options,
                                        const DataRequest& request,
                                        const std::filesystem::path& found_at) {
  if (request.augment == "resized-crop") {
    throw ConfigError("augmentation 'resized-crop' is for image folders; '" + request.name +
                      "' knows auto, none and crop-flip");
  }
  if (!(train.shape == test.shape)) {
    throw FileError(found_at.string() + ": training and test images differ in size");
  }
  if (request.augment != "auto") options.crop_flip = request.augment == "crop-flip";
  options.image_size = request.image_size;
  options.normalization = choose_normalization(request, options.normalization);
  drop_first(train, left_out(train.size(), request));
  const std::int64_t train_count = wanted(request.train_size, train.size(), request, "training");
  const std::int64_t test_count = wanted(request.test_size, test.size(), request, "test");
  auto splits = std::make_unique<DataSplits>();
  splits->train = make_array(std::move(train), train_count, options);
  options.crop_flip = false;
  splits->test = make_array(std::move(test), test_count, options);
  splits->found_at = found_at;
  return splits;
}

std::unique_ptr<DataSplits> make_idx(const DataRequest& request, ArrayOptions options,
                                     std::span<const std::uint8_t> foreign,
                                     std::string_view foreign_name) {
  check_request(request);
  const FoundFiles files = locate(request.name, request.search);
  ImageArray train = read_idx_images(files.train[0], files.train[1], 10);
  if (train.labels.size() > foreign.size() &&
      std::equal(foreign.begin(), foreign.end(), train.labels.begin())) {
    throw FileError(files.train[1].string() + ": expected " + request.name +
                    ", but these are the labels of " + std::string(foreign_name));
  }
  ImageArray test = read_idx_images(files.test[0], files.test[1], 10);
  return make_arrays(std::move(train), std::move(test), std::move(options), request, files.folder);
}

std::unique_ptr<DataSplits> make_fashion_mnist(const DataRequest& request) {
  return make_idx(request, {kFashionClasses, {{0.2860}, {0.3530}}}, kMnistBegins, "MNIST");
}

std::unique_ptr<DataSplits> make_mnist(const DataRequest& request) {
  return make_idx(request, {kDigits, {{0.1307}, {0.3081}}}, kFashionBegins, "Fashion-MNIST");
}

std::unique_ptr<DataSplits> make_cifar(const DataRequest& request, CifarKind kind,
                                       Normalization normalization) {
  check_request(request);
  const FoundFiles files = locate(request.name, request.search);
  ArrayOptions options{cifar_class_names(kind), std::move(normalization), true};
  return make_arrays(read_cifar(files.train, kind), read_cifar(files.test, kind),
                     std::move(options), request, files.folder);
}

std::unique_ptr<DataSplits> make_cifar_10(const DataRequest& request) {
  return make_cifar(request, CifarKind::kTen, {{0.4914, 0.4822, 0.4465}, {0.2023, 0.1994, 0.2010}});
}

std::unique_ptr<DataSplits> make_cifar_100(const DataRequest& request) {
  return make_cifar(request, CifarKind::kHundred,
                    {{0.5071, 0.4865, 0.4409}, {0.2673, 0.2564, 0.2762}});
}

std::int64_t size_of(const ImageListing& listing) {
  return static_cast<std::int64_t>(listing.entries.size());
}

std::unique_ptr<DataSplits> make_pictures(ImageListing train, ImageListing test,
                                          const DataRequest& request,
                                          const std::filesystem::path& found_at) {
  drop_first(train, left_out(size_of(train), request));
  keep_first(train, wanted(request.train_size, size_of(train), request, "training"));
  keep_first(test, wanted(request.test_size, size_of(test), request, "test"));
  ImageFolderOptions options;
  if (request.image_size > 0) options.image_size = request.image_size;
  options.fast_decode = request.fast_decode;
  options.normalization =
      choose_normalization(request, {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}});
  auto splits = std::make_unique<DataSplits>();
  splits->notes = passed_over_notes(train, test);
  splits->test = std::make_unique<ImageFolder>(std::move(test), options);
  options.augmentation = request.augment == "none"        ? ImageAugmentation::kNone
                         : request.augment == "crop-flip" ? ImageAugmentation::kCropFlip
                                                          : ImageAugmentation::kResizedCrop;
  splits->train = std::make_unique<ImageFolder>(std::move(train), options);
  splits->found_at = found_at;
  return splits;
}

std::unique_ptr<DataSplits> make_image_folder(const DataRequest& request) {
  check_request(request);
  const FoundFiles files = locate(request.name, request.search);
  ImageListing train = list_images(files.train[0]);
  ImageListing test = list_images(files.test[0]);
  relabel(test, train, files.test[0]);
  return make_pictures(std::move(train), std::move(test), request, files.folder);
}

std::unique_ptr<DataSplits> make_image_list(const DataRequest& request) {
  check_request(request);
  const FoundFiles files = locate(request.name, request.search);
  ImageListing train = read_image_list(files.train[0]);
  ImageListing test = read_image_list(files.test[0]);
  if (test.class_names.size() > train.class_names.size()) {
    throw FileError(files.test[0].string() + ": label " + test.class_names.back() +
                    " is not among those of the training set, 0 to " + train.class_names.back());
  }
  test.class_names = train.class_names;
  return make_pictures(std::move(train), std::move(test), request, files.folder);
}

std::unique_ptr<DataSplits> make_synthetic(const DataRequest& request) {
  check_request(request);
  if (request.augment != "auto" && request.augment != "none") {
    throw ConfigError("--augment " + request.augment + ": synthetic data are not images; use none");
  }
  if (request.normalize != "auto") {
    throw ConfigError("--normalize " + request.normalize +
                      ": synthetic data are generated with mean 0; leave --normalize out");
  }
  if (request.train_skip > 0) {
    throw ConfigError("--train-skip: synthetic data are generated, there is nothing to leave out");
  }
  SampleShape shape = request.synthetic_shape;
  if (request.image_size > 0) shape.height = shape.width = request.image_size;
  const auto make = [&](std::int64_t asked, std::int64_t usual, std::string_view split) {
    return std::make_unique<SyntheticDataset>(shape, request.synthetic_classes,
                                              asked > 0 ? asked : usual, request.seed, split);
  };
  auto splits = std::make_unique<DataSplits>();
  splits->train = make(request.train_size, 60'000, "train");
  splits->test = make(request.test_size, 10'000, "test");
  return splits;
}

}  // namespace

const std::vector<std::string>& augment_names() {
  static const std::vector<std::string> names = {"auto", "none", "crop-flip", "resized-crop"};
  return names;
}

const std::vector<std::string>& normalize_names() {
  static const std::vector<std::string> names = {"auto", "none", "half"};
  return names;
}

const DataRegistry& data_sets() {
  static const DataRegistry registry(
      "data set",
      {
          {"fashion-mnist", "70,000 grey pictures of clothes, 28 x 28, 10 classes",
           make_fashion_mnist},
          {"mnist", "70,000 handwritten digits, 28 x 28, 10 classes", make_mnist},
          {"cifar-10", "60,000 colour pictures, 32 x 32, 10 classes", make_cifar_10},
          {"cifar-100", "60,000 colour pictures, 32 x 32, 100 classes", make_cifar_100},
          {"image-folder", "JPEG and PNG pictures in train/<class>/ and val/<class>/",
           make_image_folder},
          {"image-list", "JPEG and PNG pictures named in train_list.txt, val_list.txt",
           make_image_list},
          {"wikitext-2", "2.1 million words of Wikipedia, 33,278 different ones", make_text},
          {"ptb", "Penn Treebank: 0.9 million words, 10,000 different ones", make_text},
          {"text", "words in train.txt, valid.txt and test.txt of --data-dir", make_text},
          {"synthetic", "generated, learnable data of any shape and number of classes",
           make_synthetic},
      });
  return registry;
}

std::unique_ptr<DataSplits> load_data(const DataRequest& request) {
  return data_sets().make(request.name, request);
}

}  // namespace cohort::data
