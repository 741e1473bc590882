// Pictures in folders named after their classes: FOLDER/<class>/<picture>, or deeper below the
// class.
//
// The folders are listed when the set is built, pictures are decoded when they are read; a picture
// that cannot be decoded is then a FileError naming it. Classes and the pictures in them are in
// the order of their names. Unchanging once built; read() may be called from several threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/image_transform.h"
#include "data/normalize.h"
#include "storage/file.h"

namespace cohort::data {

struct ImageListing {
  struct Entry {
    std::filesystem::path file;
    std::int64_t label;
  };
  std::vector<std::string> class_names;
  std::vector<Entry> entries;
  std::map<std::string, std::int64_t> passed_over;  // other files, by their ending
};

// Lists the .jpg, .jpeg and .png files (in any case) in the folders of `folder` and all folders
// below these, in the order of torchvision's ImageFolder. Hidden files and folders are none. Throws
// FileError when there are no classes, or a class has no pictures.
ImageListing list_images(const std::filesystem::path& folder);

// A line for each set of which files were passed over: how many of which ending.
std::vector<std::string> passed_over_notes(const ImageListing& train, const ImageListing& test);

// Gives `other` the labels of `listing`, whose classes must include all of its own; throws
// FileError naming the first that is not there. Classes without pictures in `other` are fine.
void relabel(ImageListing& other, const ImageListing& listing,
             const std::filesystem::path& other_folder);

// The first `count` entries when one picture of each class is taken in turn, so that a small part
// of a set still has all its classes.
void keep_first(ImageListing& listing, std::int64_t count);
// The entries that keep_first() would not keep.
void drop_first(ImageListing& listing, std::int64_t count);

enum class ImageAugmentation {
  kNone,         // shorter side to image_size * 256 / 224, centre crop
  kCropFlip,     // the same with a random crop, mirrored every second time
  kResizedCrop,  // random resized crop, mirrored every second time
};

struct ImageFolderOptions {
  std::int64_t image_size = 224;
  ImageAugmentation augmentation = ImageAugmentation::kNone;
  Normalization normalization = {};
  bool fast_decode = false;  // see DataRequest
};

class ImageFolder final : public Dataset {
 public:
  ImageFolder(ImageListing listing, const ImageFolderOptions& options);

  std::int64_t size() const override { return static_cast<std::int64_t>(listing_.entries.size()); }
  SampleShape shape() const override { return {3, side_, side_}; }
  const std::vector<std::string>& class_names() const override { return listing_.class_names; }
  std::int64_t label(std::int64_t index) const override {
    return listing_.entries[static_cast<std::size_t>(index)].label;
  }
  void read(std::int64_t index, std::uint64_t augmentation, std::span<float> out) const override;

  const ImageListing& listing() const { return listing_; }

 private:
  ImageListing listing_;
  int side_;
  ImageAugmentation augmentation_;
  bool fast_decode_;
  NormalizeTable table_;
};

// The file's bytes, at most 256 MiB of them.
storage::FileContent read_image_file(const std::filesystem::path& file);

}  // namespace cohort::data
