// Pictures named in a text file, one a line with its label: "train/n01440764/1.JPEG 0". The form in
// which PaddlePaddle's image classification reads ImageNet and Flowers.
#pragma once

#include <filesystem>

#include "data/image_folder.h"

namespace cohort::data {

// Reads `file`. Paths are relative to its folder; a label is a whole number from 0 up; empty lines
// are passed over. Classes are named "0", "1", ... up to the highest label. Throws FileError naming
// the line that is not so, and when there are no pictures. Whether the pictures are there shows
// when they are read.
ImageListing read_image_list(const std::filesystem::path& file);

}  // namespace cohort::data
