// JPEG and PNG files to 8-bit RGB. The format is told by content, not by name.
//
// Grey, palette, alpha (dropped), 16-bit (rounded) and CMYK pictures all become RGB. Damaged or
// truncated files are FileErrors; a build without libjpeg or libpng answers with a ConfigError
// that says so. All functions are pure and may be called from several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cohort::data {

inline constexpr int kMaxImageSide = 16384;
inline constexpr std::int64_t kMaxImagePixels = std::int64_t{256} << 20;

struct ImageSize {
  int width = 0;
  int height = 0;
  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

struct Image {
  ImageSize size;
  std::vector<std::uint8_t> pixels;  // height x width x RGB
};

// What the header says, without decoding. `name` stands for the file in messages.
ImageSize read_image_size(std::span<const std::uint8_t> bytes, const std::string& name);

// Decodes. `reduction` (1, 2, 4 or 8) allows a JPEG to be decoded at that fraction of its size,
// rounded up, which is much faster; other formats come in full. The result's size tells.
Image decode_image(std::span<const std::uint8_t> bytes, const std::string& name, int reduction = 1);

namespace detail {

ImageSize read_jpeg_size(std::span<const std::uint8_t> bytes, const std::string& name);
Image decode_jpeg(std::span<const std::uint8_t> bytes, const std::string& name, int reduction);
ImageSize read_png_size(std::span<const std::uint8_t> bytes, const std::string& name);
Image decode_png(std::span<const std::uint8_t> bytes, const std::string& name);

// Throws FileError unless a file of `file_bytes` may hold a picture of this size.
void check_image_size(std::uint64_t width, std::uint64_t height, std::size_t file_bytes,
                      const std::string& name);

}  // namespace detail
}  // namespace cohort::data
