#include "data/image_transform.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"

namespace cohort::data {
namespace {

// PIL's fixed point: 8 bits for the value, 2 spare, the rest for the fraction.
constexpr int kFractionBits = 32 - 8 - 2;
constexpr std::int32_t kHalf = 1 << (kFractionBits - 1);

std::uint8_t to_byte(std::int32_t fixed) {
  return static_cast<std::uint8_t>(std::clamp(fixed >> kFractionBits, 0, 255));
}

// Both passes round to bytes, because PIL does.
Image resize_rows(const Image& image, const CropBox& box, int width) {
  const ResampleAxis axis = resample_axis(box.width, width);
  Image result{{width, box.height}, {}};
  result.pixels.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(box.height) * 3);
  std::uint8_t* out = result.pixels.data();
  for (int y = 0; y < box.height; ++y) {
    const std::size_t begin =
        (static_cast<std::size_t>(box.y + y) * static_cast<std::size_t>(image.size.width) +
         static_cast<std::size_t>(box.x)) *
        3;
    const std::uint8_t* row = image.pixels.data() + begin;
    for (std::size_t x = 0; x < static_cast<std::size_t>(width); ++x, out += 3) {
      const std::uint8_t* source = row + std::ptrdiff_t{3} * axis.first[x];
      const std::int32_t* weight = axis.fixed_weights_of(x);
      std::int32_t red = kHalf;
      std::int32_t green = kHalf;
      std::int32_t blue = kHalf;
      for (int k = 0; k < axis.count[x]; ++k, source += 3) {
        red += source[0] * weight[k];
        green += source[1] * weight[k];
        blue += source[2] * weight[k];
      }
      out[0] = to_byte(red);
      out[1] = to_byte(green);
      out[2] = to_byte(blue);
    }
  }
  return result;
}

Image resize_columns(const Image& image, int height) {
  const ResampleAxis axis = resample_axis(image.size.height, height);
  const std::size_t row_bytes = static_cast<std::size_t>(image.size.width) * 3;
  Image result{{image.size.width, height}, {}};
  result.pixels.resize(row_bytes * static_cast<std::size_t>(height));
  std::vector<std::int32_t> sums(row_bytes);
  for (std::size_t y = 0; y < static_cast<std::size_t>(height); ++y) {
    std::fill(sums.begin(), sums.end(), kHalf);
    for (int k = 0; k < axis.count[y]; ++k) {
      const std::int32_t weight = axis.fixed_weights_of(y)[k];
      const std::uint8_t* row =
          image.pixels.data() + static_cast<std::size_t>(axis.first[y] + k) * row_bytes;
      for (std::size_t i = 0; i < row_bytes; ++i) sums[i] += row[i] * weight;
    }
    std::uint8_t* out = result.pixels.data() + y * row_bytes;
    for (std::size_t i = 0; i < row_bytes; ++i) out[i] = to_byte(sums[i]);
  }
  return result;
}

int round_to_int(double value) { return static_cast<int>(std::nearbyint(value)); }

}  // namespace

ResampleAxis resample_axis(std::int64_t input_size, std::int64_t output_size) {
  COHORT_CHECK(input_size > 0 && output_size > 0, "sizes are positive");
  const double scale = static_cast<double>(input_size) / static_cast<double>(output_size);
  const double support = std::max(scale, 1.0);
  ResampleAxis axis;
  axis.taps = static_cast<std::size_t>(std::ceil(support)) * 2 + 1;
  axis.weights.resize(static_cast<std::size_t>(output_size) * axis.taps);
  axis.fixed_weights.resize(axis.weights.size());
  std::vector<double> exact(axis.taps);
  for (std::int64_t i = 0; i < output_size; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const int begin = std::max(0, static_cast<int>(std::lround(centre - support)));
    const int end =
        std::min(static_cast<int>(input_size), static_cast<int>(std::lround(centre + support)));
    double total = 0;
    for (int k = 0; k < end - begin; ++k) {
      const double distance = std::abs((k + begin - centre + 0.5) / support);
      exact[static_cast<std::size_t>(k)] = distance < 1.0 ? 1.0 - distance : 0.0;
      total += exact[static_cast<std::size_t>(k)];
    }
    for (int k = 0; k < end - begin; ++k) {
      const double weight = exact[static_cast<std::size_t>(k)] / total;
      const std::size_t place =
          static_cast<std::size_t>(i) * axis.taps + static_cast<std::size_t>(k);
      axis.weights[place] = static_cast<float>(weight);
      axis.fixed_weights[place] =
          static_cast<std::int32_t>(std::lround(weight * (1 << kFractionBits)));
    }
    axis.first.push_back(begin);
    axis.count.push_back(end - begin);
  }
  return axis;
}

Image resized_crop(const Image& image, const CropBox& box, ImageSize size) {
  COHORT_CHECK(box.x >= 0 && box.y >= 0 && box.width > 0 && box.height > 0 &&
                   box.x + box.width <= image.size.width && box.y + box.height <= image.size.height,
               "the crop lies inside the picture");
  Image narrow = resize_rows(image, box, size.width);
  return box.height == size.height ? std::move(narrow) : resize_columns(narrow, size.height);
}

CropBox random_resized_crop(ImageSize size, RandomStream& random) {
  constexpr double kLowRatio = 3.0 / 4.0;
  constexpr double kHighRatio = 4.0 / 3.0;
  const double area = static_cast<double>(size.width) * size.height;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double wanted_area = area * random.uniform(0.08, 1.0);
    const double ratio = std::exp(random.uniform(std::log(kLowRatio), std::log(kHighRatio)));
    const int width = round_to_int(std::sqrt(wanted_area * ratio));
    const int height = round_to_int(std::sqrt(wanted_area / ratio));
    if (width <= 0 || width > size.width || height <= 0 || height > size.height) continue;
    const auto y = random.below(static_cast<std::uint64_t>(size.height - height) + 1);
    const auto x = random.below(static_cast<std::uint64_t>(size.width - width) + 1);
    return {static_cast<int>(x), static_cast<int>(y), width, height};
  }
  const double ratio = static_cast<double>(size.width) / size.height;
  CropBox box{0, 0, size.width, size.height};
  if (ratio < kLowRatio) {
    box.height = std::clamp(round_to_int(size.width / kLowRatio), 1, size.height);
  } else if (ratio > kHighRatio) {
    box.width = std::clamp(round_to_int(size.height * kHighRatio), 1, size.width);
  }
  box.x = (size.width - box.width) / 2;
  box.y = (size.height - box.height) / 2;
  return box;
}

ImageSize shorter_side_to(ImageSize size, int side) {
  const auto longer = [side](int longer_side, int shorter_side) {
    return static_cast<int>(static_cast<std::int64_t>(side) * longer_side / shorter_side);
  };
  if (size.width <= size.height) return {side, longer(size.height, size.width)};
  return {longer(size.width, size.height), side};
}

CropBox centre_square(ImageSize size, int side) {
  return {round_to_int((size.width - side) / 2.0), round_to_int((size.height - side) / 2.0), side,
          side};
}

CropBox without_long_ends(ImageSize size) {
  const int limit = 8 * std::min(size.width, size.height);
  CropBox box{0, 0, std::min(size.width, limit), std::min(size.height, limit)};
  box.x = (size.width - box.width) / 2;
  box.y = (size.height - box.height) / 2;
  return box;
}

CropBox scale_box(const CropBox& box, ImageSize from, ImageSize to) {
  if (from == to) return box;
  const auto scale = [](int place, int from_side, int to_side) {
    return static_cast<int>(static_cast<std::int64_t>(place) * to_side / from_side);
  };
  CropBox scaled;
  scaled.x = std::min(scale(box.x, from.width, to.width), to.width - 1);
  scaled.y = std::min(scale(box.y, from.height, to.height), to.height - 1);
  scaled.width = std::max(1, scale(box.x + box.width, from.width, to.width) - scaled.x);
  scaled.height = std::max(1, scale(box.y + box.height, from.height, to.height) - scaled.y);
  return scaled;
}

int permitted_reduction(const CropBox& needed, ImageSize wanted) {
  int reduction = 8;
  while (reduction > 1 &&
         (needed.width / reduction < wanted.width || needed.height / reduction < wanted.height)) {
    reduction /= 2;
  }
  return reduction;
}

void write_normalized(const Image& image, const CropBox& box, bool mirror,
                      const NormalizeTable& table, std::span<float> out) {
  COHORT_CHECK(table.channels() == 3, "pictures have three channels");
  const auto width = static_cast<std::size_t>(box.width);
  const auto height = static_cast<std::size_t>(box.height);
  COHORT_CHECK(out.size() == 3 * width * height, "room for one sample");
  const std::ptrdiff_t step = mirror ? -3 : 3;
  for (std::size_t y = 0; y < height; ++y) {
    const std::size_t row =
        (static_cast<std::size_t>(box.y) + y) * static_cast<std::size_t>(image.size.width) +
        static_cast<std::size_t>(box.x);
    for (std::size_t c = 0; c < 3; ++c) {
      const std::array<float, 256>& values = table[static_cast<std::int64_t>(c)];
      auto source = static_cast<std::ptrdiff_t>((row + (mirror ? width - 1 : 0)) * 3 + c);
      float* target = out.data() + (c * height + y) * width;
      for (std::size_t x = 0; x < width; ++x, source += step) {
        target[x] = values[image.pixels[static_cast<std::size_t>(source)]];
      }
    }
  }
}

}  // namespace cohort::data
