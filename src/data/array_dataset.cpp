#include "data/array_dataset.h"

#include <algorithm>

#include "core/error.h"
#include "core/random.h"

namespace cohort::data {
namespace {

// One row: the image's columns [first, last) are there, the rest is black.
void write_row(const std::uint8_t* row, std::int64_t width, const ImageShift& shift,
               const std::array<float, 256>& table, float* out) {
  const std::int64_t first = std::clamp<std::int64_t>(-shift.right, 0, width);
  const std::int64_t last = std::clamp<std::int64_t>(width - shift.right, first, width);
  if (!shift.mirror) {
    std::fill(out, out + first, table[0]);
    for (std::int64_t x = first; x < last; ++x) out[x] = table[row[x + shift.right]];
    std::fill(out + last, out + width, table[0]);
  } else {
    float* end = out + width - 1;
    std::fill(out + width - first, out + width, table[0]);
    for (std::int64_t x = first; x < last; ++x) end[-x] = table[row[x + shift.right]];
    std::fill(out, out + width - last, table[0]);
  }
}

}  // namespace

ArrayDataset::ArrayDataset(ImageArray images, const ArrayOptions& options)
    : images_(std::move(images)),
      shape_(images_.shape),
      class_names_(options.class_names),
      table_(options.normalization),
      crop_flip_(options.crop_flip) {
  COHORT_CHECK(
      static_cast<std::int64_t>(images_.pixels.size()) == images_.size() * images_.shape.numel(),
      "an image for each label");
  COHORT_CHECK(table_.channels() == images_.shape.channels, "a normalisation for each channel");
  const std::int64_t side = options.image_size;
  if (side > 0 && (side != shape_.height || side != shape_.width)) {
    rows_ = resample_axis(shape_.height, side);
    columns_ = resample_axis(shape_.width, side);
    shape_.height = shape_.width = side;
  }
}

ImageShift ArrayDataset::shift(std::uint64_t augmentation) const {
  if (!crop_flip_) return {};
  constexpr std::uint64_t kPlaces = 2 * kPadding + 1;
  RandomStream random(augmentation);
  ImageShift drawn;
  drawn.down = static_cast<std::int64_t>(random.below(kPlaces)) - kPadding;
  drawn.right = static_cast<std::int64_t>(random.below(kPlaces)) - kPadding;
  drawn.mirror = (random() >> 63) != 0;
  return drawn;
}

void ArrayDataset::read(std::int64_t index, std::uint64_t augmentation,
                        std::span<float> out) const {
  COHORT_CHECK(index >= 0 && index < size(), "sample index in range");
  COHORT_CHECK(static_cast<std::int64_t>(out.size()) == shape_.numel(), "room for one sample");
  if (rows_.empty()) {
    read_stored_size(index, augmentation, out.data());
    return;
  }
  std::vector<float> stored(static_cast<std::size_t>(images_.shape.numel()));
  read_stored_size(index, augmentation, stored.data());
  resize(stored.data(), out.data());
}

void ArrayDataset::read_stored_size(std::int64_t index, std::uint64_t augmentation,
                                    float* out) const {
  const std::int64_t height = images_.shape.height;
  const std::int64_t width = images_.shape.width;
  const std::int64_t plane = height * width;
  const std::uint8_t* source = images_.pixels.data() + index * images_.shape.numel();
  const ImageShift moved = shift(augmentation);
  for (std::int64_t c = 0; c < images_.shape.channels; ++c, source += plane, out += plane) {
    const std::array<float, 256>& table = table_[c];
    if (!crop_flip_) {
      for (std::int64_t i = 0; i < plane; ++i) out[i] = table[source[i]];
      continue;
    }
    for (std::int64_t y = 0; y < height; ++y) {
      const std::int64_t from = y + moved.down;
      float* row = out + y * width;
      if (from < 0 || from >= height) {
        std::fill(row, row + width, table[0]);
      } else {
        write_row(source + from * width, width, moved, table, row);
      }
    }
  }
}

void ArrayDataset::resize(const float* stored, float* out) const {
  const auto height = static_cast<std::size_t>(images_.shape.height);
  const auto width = static_cast<std::size_t>(images_.shape.width);
  const auto side = static_cast<std::size_t>(shape_.width);
  std::vector<float> narrow(height * side);
  for (std::int64_t c = 0; c < shape_.channels; ++c, stored += height * width) {
    for (std::size_t y = 0; y < height; ++y) {
      for (std::size_t x = 0; x < side; ++x) {
        const float* source = stored + y * width + columns_.first[x];
        const float* weight = columns_.weights_of(x);
        float sum = 0;
        for (int k = 0; k < columns_.count[x]; ++k) sum += source[k] * weight[k];
        narrow[y * side + x] = sum;
      }
    }
    for (std::size_t y = 0; y < side; ++y, out += side) {
      std::fill(out, out + side, 0.0F);
      for (int k = 0; k < rows_.count[y]; ++k) {
        const float weight = rows_.weights_of(y)[k];
        const float* source = narrow.data() + static_cast<std::size_t>(rows_.first[y] + k) * side;
        for (std::size_t x = 0; x < side; ++x) out[x] += source[x] * weight;
      }
    }
  }
}

}  // namespace cohort::data
