// Any bytes in place of a CIFAR batch: complete records with labels in range, or a FileError.
#include <cstdlib>

#include "core/error.h"
#include "data/cifar.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const cohort::data::CifarKind kind :
       {cohort::data::CifarKind::kTen, cohort::data::CifarKind::kHundred}) {
    try {
      cohort::data::ImageArray images;
      cohort::data::parse_cifar({data, size}, kind, "input", images);
      const std::size_t classes = cohort::data::cifar_class_names(kind).size();
      if (images.labels.size() * cohort::data::kCifarPixels != images.pixels.size()) std::abort();
      for (const std::uint8_t label : images.labels) {
        if (label >= classes) std::abort();
      }
    } catch (const cohort::FileError&) {
    }
  }
  return 0;
}
