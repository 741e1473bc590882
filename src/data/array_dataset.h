// A data set that lies in memory as bytes: MNIST, Fashion-MNIST, CIFAR.
//
// Unchanging once built; read() may be called from several threads. Augmentation is that of CIFAR
// training: shift by up to four pixels each way (what comes in from outside is black), and mirror
// every second image.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/image_array.h"
#include "data/image_transform.h"
#include "data/normalize.h"

namespace cohort::data {

struct ArrayOptions {
  std::vector<std::string> class_names = {};  // every label of the images is below its length
  Normalization normalization = {};           // as many channels as the images have
  bool crop_flip = false;
  std::int64_t image_size = 0;  // resize (bilinear) to this square; 0 keeps the stored size
};

// How crop-flip moves an image: row y of the result is row y + down of the image, and column x is
// column x + right, counted from the other side where it is mirrored.
struct ImageShift {
  std::int64_t down = 0;
  std::int64_t right = 0;
  bool mirror = false;
};

class ArrayDataset final : public Dataset {
 public:
  static constexpr std::int64_t kPadding = 4;

  ArrayDataset(ImageArray images, const ArrayOptions& options);

  std::int64_t size() const override { return images_.size(); }
  SampleShape shape() const override { return shape_; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  std::int64_t label(std::int64_t index) const override {
    return images_.labels[static_cast<std::size_t>(index)];
  }
  void read(std::int64_t index, std::uint64_t augmentation, std::span<float> out) const override;

  // What read() makes a sample of, for those who make it elsewhere: normalised values of the
  // shifted image, black where nothing is, and then resized if there are axes for it.
  const ImageArray& images() const { return images_; }
  const NormalizeTable& table() const { return table_; }
  ImageShift shift(std::uint64_t augmentation) const;
  const ResampleAxis& rows() const { return rows_; }  // empty when the stored size is kept
  const ResampleAxis& columns() const { return columns_; }

 private:
  void read_stored_size(std::int64_t index, std::uint64_t augmentation, float* out) const;
  void resize(const float* stored, float* out) const;

  ImageArray images_;
  SampleShape shape_;
  std::vector<std::string> class_names_;
  NormalizeTable table_;
  bool crop_flip_;
  ResampleAxis rows_;
  ResampleAxis columns_;
};

}  // namespace cohort::data
