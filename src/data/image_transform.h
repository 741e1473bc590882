// Geometry of pictures: where to crop, and how to change the size. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/random.h"
#include "data/image_codec.h"
#include "data/normalize.h"

namespace cohort::data {

// One axis of a bilinear resize with antialiasing: a triangle filter, widened by the reduction
// when the picture shrinks (as PIL and torchvision do it). Output place i is the sum of
// weights_of(i)[k] * input[first[i] + k] over count[i] places; the weights add up to 1.
struct ResampleAxis {
  std::vector<int> first;
  std::vector<int> count;
  std::size_t taps = 0;  // room for the weights of one place
  std::vector<float> weights;
  std::vector<std::int32_t> fixed_weights;  // times 2^22, rounded

  bool empty() const { return first.empty(); }
  const float* weights_of(std::size_t i) const { return weights.data() + i * taps; }
  const std::int32_t* fixed_weights_of(std::size_t i) const {
    return fixed_weights.data() + i * taps;
  }
};

// Both sizes > 0.
ResampleAxis resample_axis(std::int64_t input_size, std::int64_t output_size);

struct CropBox {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
  friend bool operator==(const CropBox&, const CropBox&) = default;
};

// The part `box` of `image`, which must lie inside it, resized to `size`. Bit for bit PIL's
// Image.crop(box).resize(size, BILINEAR).
Image resized_crop(const Image& image, const CropBox& box, ImageSize size);

// A random part of 8 to 100 % of the area with an aspect ratio of 3/4 to 4/3: torchvision's
// RandomResizedCrop, ten tries and then the largest centred part of permitted ratio.
CropBox random_resized_crop(ImageSize size, RandomStream& random);

// The size at which the shorter side is `side`, the ratio kept.
ImageSize shorter_side_to(ImageSize size, int side);

// The square of `side` in the middle of a picture at least that large.
CropBox centre_square(ImageSize size, int side);

// The middle of a picture more than eight times as long as wide, or all of it: bounds what a resize
// by the shorter side can cost.
CropBox without_long_ends(ImageSize size);

// `box`, drawn on a picture of size `from`, on the same picture at size `to`; never empty.
CropBox scale_box(const CropBox& box, ImageSize from, ImageSize to);

// The largest reduction a decoder may use so that the part `needed` still has at least
// `wanted` pixels each way: 1, 2, 4 or 8.
int permitted_reduction(const CropBox& needed, ImageSize wanted);

// Writes `box` of `image` to `out` as channels x height x width, normalised and maybe mirrored.
void write_normalized(const Image& image, const CropBox& box, bool mirror,
                      const NormalizeTable& table, std::span<float> out);

}  // namespace cohort::data
