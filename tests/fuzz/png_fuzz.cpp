// Any bytes in place of a PNG picture: an image of the size its header says, or a FileError.
#include <cstdlib>

#include "core/error.h"
#include "data/image_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const cohort::data::ImageSize full = cohort::data::read_image_size({data, size}, "input");
    // Large pictures are right, only slow; the fuzzer has better things to do.
    if (full.width > 256 || full.height > 256) return 0;
    for (const int reduction : {1, 8}) {
      const cohort::data::Image image =
          cohort::data::decode_image({data, size}, "input", reduction);
      const auto pixels = static_cast<std::size_t>(image.size.width * image.size.height);
      if (reduction == 1 && !(image.size == full)) std::abort();
      if (image.pixels.size() != 3 * pixels) std::abort();
    }
  } catch (const cohort::FileError&) {
  }
  return 0;
}
