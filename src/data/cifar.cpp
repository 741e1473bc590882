#include "data/cifar.h"

#include "core/error.h"
#include "storage/file.h"

namespace cohort::data {
namespace {

constexpr std::uint64_t kMaxCifarBytes = std::uint64_t{2} << 30;

void check_label(int label, int classes, const std::string& name, std::size_t record) {
  if (label < classes) return;
  throw FileError(name + ": record " + std::to_string(record) + " has label " +
                  std::to_string(label) + ", expected 0 to " + std::to_string(classes - 1));
}

}  // namespace

std::int64_t cifar_record_bytes(CifarKind kind) {
  return kCifarPixels + (kind == CifarKind::kTen ? 1 : 2);
}

const std::vector<std::string>& cifar_class_names(CifarKind kind) {
  static const std::vector<std::string> ten = {"airplane", "automobile", "bird",  "cat",  "deer",
                                               "dog",      "frog",       "horse", "ship", "truck"};
  static const std::vector<std::string> hundred = {
      "apple",       "aquarium_fish", "baby",      "bear",       "beaver",       "bed",
      "bee",         "beetle",        "bicycle",   "bottle",     "bowl",         "boy",
      "bridge",      "bus",           "butterfly", "camel",      "can",          "castle",
      "caterpillar", "cattle",        "chair",     "chimpanzee", "clock",        "cloud",
      "cockroach",   "couch",         "crab",      "crocodile",  "cup",          "dinosaur",
      "dolphin",     "elephant",      "flatfish",  "forest",     "fox",          "girl",
      "hamster",     "house",         "kangaroo",  "keyboard",   "lamp",         "lawn_mower",
      "leopard",     "lion",          "lizard",    "lobster",    "man",          "maple_tree",
      "motorcycle",  "mountain",      "mouse",     "mushroom",   "oak_tree",     "orange",
      "orchid",      "otter",         "palm_tree", "pear",       "pickup_truck", "pine_tree",
      "plain",       "plate",         "poppy",     "porcupine",  "possum",       "rabbit",
      "raccoon",     "ray",           "road",      "rocket",     "rose",         "sea",
      "seal",        "shark",         "shrew",     "skunk",      "skyscraper",   "snail",
      "snake",       "spider",        "squirrel",  "streetcar",  "sunflower",    "sweet_pepper",
      "table",       "tank",          "telephone", "television", "tiger",        "tractor",
      "train",       "trout",         "tulip",     "turtle",     "wardrobe",     "whale",
      "willow_tree", "wolf",          "woman",     "worm"};
  return kind == CifarKind::kTen ? ten : hundred;
}

void parse_cifar(std::span<const std::uint8_t> bytes, CifarKind kind, const std::string& name,
                 ImageArray& into) {
  const auto record_bytes = static_cast<std::size_t>(cifar_record_bytes(kind));
  if (bytes.empty() || bytes.size() % record_bytes != 0) {
    throw FileError(name + ": has " + std::to_string(bytes.size()) +
                    " bytes, expected a positive multiple of the record size " +
                    std::to_string(record_bytes));
  }
  const std::size_t records = bytes.size() / record_bytes;
  for (std::size_t i = 0; i < records; ++i) {
    const std::uint8_t* record = bytes.data() + i * record_bytes;
    check_label(record[0], kind == CifarKind::kTen ? 10 : 20, name, i);
    if (kind == CifarKind::kHundred) check_label(record[1], 100, name, i);
  }
  into.shape = {3, 32, 32};
  into.labels.reserve(into.labels.size() + records);
  into.pixels.reserve(into.pixels.size() + records * kCifarPixels);
  for (std::size_t i = 0; i < records; ++i) {
    const std::uint8_t* record = bytes.data() + i * record_bytes;
    const std::uint8_t* pixels = record + record_bytes - kCifarPixels;
    into.labels.push_back(pixels[-1]);
    into.pixels.insert(into.pixels.end(), pixels, pixels + kCifarPixels);
  }
}

ImageArray read_cifar(std::span<const std::filesystem::path> files, CifarKind kind) {
  ImageArray images;
  for (const std::filesystem::path& file : files) {
    parse_cifar(storage::read_file(file, kMaxCifarBytes).octets(), kind, file.string(), images);
  }
  return images;
}

}  // namespace cohort::data
