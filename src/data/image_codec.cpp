#include "data/image_codec.h"

#include "core/error.h"

namespace cohort::data {
namespace {

enum class Format { kJpeg, kPng };

Format format_of(std::span<const std::uint8_t> bytes, const std::string& name) {
  if (bytes.size() >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff) {
    return Format::kJpeg;
  }
  if (bytes.size() >= 4 && bytes[0] == 0x89 && bytes[1] == 'P' && bytes[2] == 'N' &&
      bytes[3] == 'G') {
    return Format::kPng;
  }
  throw FileError(name + ": neither a JPEG nor a PNG picture" +
                  (bytes.empty() ? " (the file is empty)" : ""));
}

}  // namespace

ImageSize read_image_size(std::span<const std::uint8_t> bytes, const std::string& name) {
  return format_of(bytes, name) == Format::kJpeg ? detail::read_jpeg_size(bytes, name)
                                                 : detail::read_png_size(bytes, name);
}

Image decode_image(std::span<const std::uint8_t> bytes, const std::string& name, int reduction) {
  COHORT_CHECK(reduction == 1 || reduction == 2 || reduction == 4 || reduction == 8,
               "reduction is 1, 2, 4 or 8");
  return format_of(bytes, name) == Format::kJpeg ? detail::decode_jpeg(bytes, name, reduction)
                                                 : detail::decode_png(bytes, name);
}

namespace detail {

void check_image_size(std::uint64_t width, std::uint64_t height, std::size_t file_bytes,
                      const std::string& name) {
  const std::string size = std::to_string(width) + " x " + std::to_string(height);
  if (width == 0 || height == 0) throw FileError(name + ": a picture of " + size + " pixels");
  if (width > kMaxImageSide || height > kMaxImageSide ||
      width * height > static_cast<std::uint64_t>(kMaxImagePixels)) {
    throw FileError(name + ": a picture of " + size + " pixels; at most " +
                    std::to_string(kMaxImageSide) + " a side and " +
                    std::to_string(kMaxImagePixels) + " in all are read");
  }
  // Neither format packs more pixels into a byte than deflate does one-bit pixels: 8 x 1032.
  // A header that promises more comes from a damaged or hostile file and costs no memory here.
  if (width * height > 8256 * static_cast<std::uint64_t>(file_bytes)) {
    throw FileError(name + ": its header promises " + size + " pixels, but the file has only " +
                    std::to_string(file_bytes) + " bytes");
  }
}

}  // namespace detail
}  // namespace cohort::data
