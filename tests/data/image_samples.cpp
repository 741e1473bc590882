// Writes what the image folder FOLDER gives a model, for compare_pixels.py: each picture's label
// and bytes after resizing and cropping to SIDE x SIDE.
//
//   image_samples FOLDER SIDE > FILE
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

#include "data/image_folder.h"

int main(int count, char** arguments) try {
  if (count != 3) return 2;
  const std::int64_t side = std::atoi(arguments[2]);
  const cohort::data::ImageFolder data(
      cohort::data::list_images(arguments[1]),
      {side, cohort::data::ImageAugmentation::kNone, cohort::data::Normalization::none(3)});
  std::vector<float> sample(static_cast<std::size_t>(data.shape().numel()));
  for (std::int64_t i = 0; i < data.size(); ++i) {
    data.read(i, 0, sample);
    std::putchar(static_cast<int>(data.label(i)));
    for (const float value : sample) std::putchar(static_cast<int>(std::lround(value * 255)));
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
