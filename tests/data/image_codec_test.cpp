#include "data/image_codec.h"

#include "core/error.h"
#include "data/support.h"

#ifdef COHORT_WITH_PNG
#include <png.h>
#endif

namespace cohort::data::test {
namespace {

using ::testing::HasSubstr;

[[maybe_unused]] void expect_colour(const Image& image, int red, int green, int blue) {
  ASSERT_EQ(image.pixels.size(), static_cast<std::size_t>(image.size.width) * 3 *
                                     static_cast<std::size_t>(image.size.height));
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    ASSERT_NEAR(image.pixels[i], red, 3);
    ASSERT_NEAR(image.pixels[i + 1], green, 3);
    ASSERT_NEAR(image.pixels[i + 2], blue, 3);
  }
}

TEST(ImageCodec, WhatIsNoPictureIsRefused) {
  for (const ByteVector& bytes : {ByteVector{}, ByteVector{1, 2, 3, 4, 5}, ByteVector{0xff}}) {
    EXPECT_THAT(message_of<FileError>([&] { decode_image(bytes, "p.jpg"); }),
                HasSubstr("p.jpg: neither a JPEG nor a PNG"));
  }
}

TEST(ImageCodec, HeadersThatPromiseTooMuchAreRefused) {
  const auto refused = [](std::uint64_t width, std::uint64_t height, std::size_t bytes) {
    return message_of<FileError>([&] { detail::check_image_size(width, height, bytes, "p"); });
  };
  EXPECT_EQ(refused(16384, 16384, 1 << 20), "");
  EXPECT_THAT(refused(16385, 1, 1 << 20), HasSubstr("16384 a side"));
  EXPECT_THAT(refused(0, 5, 100), HasSubstr("0 x 5"));
  EXPECT_THAT(refused(16000, 16000, 1000), HasSubstr("only 1000 bytes"));
}

#ifdef COHORT_WITH_JPEG
TEST(ImageCodec, DecodesColourGreyAndCmykJpegs) {
  expect_colour(decode_image(jpeg(20, 10, {200, 30, 90}), "x"), 200, 30, 90);
  expect_colour(decode_image(jpeg(9, 9, {77}), "x"), 77, 77, 77);
  // libjpeg writes the inks as they are given, with an Adobe marker: inverted.
  expect_colour(decode_image(jpeg(8, 8, {255, 128, 0, 255}), "x"), 255, 128, 0);
  expect_colour(decode_image(jpeg(8, 8, {255, 255, 255, 0}), "x"), 0, 0, 0);
}

TEST(ImageCodec, ReducedJpegsHaveTheReducedSize) {
  const ByteVector bytes = jpeg(100, 61, {10, 200, 30});
  EXPECT_EQ(read_image_size(bytes, "x"), (ImageSize{100, 61}));
  for (const int reduction : {1, 2, 4, 8}) {
    const Image image = decode_image(bytes, "x", reduction);
    EXPECT_EQ(image.size,
              (ImageSize{(100 + reduction - 1) / reduction, (61 + reduction - 1) / reduction}));
    expect_colour(image, 10, 200, 30);
  }
}

TEST(ImageCodec, EveryTruncatedJpegIsRefusedAndNamed) {
  const ByteVector bytes = jpeg(40, 40, {200, 30, 90});
  for (std::size_t n = 0; n + 2 < bytes.size(); ++n) {
    EXPECT_THAT(message_of<FileError>([&] { decode_image(std::span(bytes).first(n), "p.jpg"); }),
                HasSubstr("p.jpg: "))
        << n << " of " << bytes.size();
  }
}
#endif

#ifdef COHORT_WITH_PNG
ByteVector png(int width, int height, png_uint_32 format, const void* pixels,
               const void* colour_map = nullptr, unsigned colours = 0) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = format;
  image.colormap_entries = colours;
  png_alloc_size_t size = 1 << 16;
  ByteVector bytes(size);
  EXPECT_NE(png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels, 0, colour_map), 0)
      << image.message;
  bytes.resize(size);
  return bytes;
}

TEST(ImageCodec, DecodesPngsOfEverySort) {
  const ByteVector rgb = {1, 2, 3, 250, 251, 252};
  EXPECT_EQ(decode_image(png(2, 1, PNG_FORMAT_RGB, rgb.data()), "x").pixels, rgb);
  const ByteVector grey = {5, 250};
  EXPECT_EQ(decode_image(png(1, 2, PNG_FORMAT_GRAY, grey.data()), "x").pixels,
            (ByteVector{5, 5, 5, 250, 250, 250}));
  const ByteVector rgba = {10, 20, 30, 128, 40, 50, 60, 255};
  EXPECT_EQ(decode_image(png(2, 1, PNG_FORMAT_RGBA, rgba.data()), "x").pixels,
            (ByteVector{10, 20, 30, 40, 50, 60}));
  const ByteVector map = {9, 8, 7, 100, 101, 102};
  const ByteVector indices = {1, 0, 1};
  EXPECT_EQ(
      decode_image(png(3, 1, PNG_FORMAT_RGB_COLORMAP, indices.data(), map.data(), 2), "x").pixels,
      (ByteVector{100, 101, 102, 9, 8, 7, 100, 101, 102}));
}

TEST(ImageCodec, SixteenBitPngsAreScaledToEight) {
  const std::vector<std::uint16_t> deep = {0, 65535, 32896};
  const Image image = decode_image(png(1, 1, PNG_FORMAT_LINEAR_RGB, deep.data()), "x");
  // The file stores the values as they are; 32896 = 128 * 257.
  EXPECT_EQ(image.pixels, (ByteVector{0, 255, 128}));
}

TEST(ImageCodec, EveryTruncatedPngIsRefusedAndNamed) {
  const ByteVector pixels(300, 77);
  const ByteVector bytes = png(10, 10, PNG_FORMAT_RGB, pixels.data());
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_THAT(message_of<FileError>([&] { decode_image(std::span(bytes).first(n), "p.png"); }),
                HasSubstr("p.png: "))
        << n << " of " << bytes.size();
  }
}

TEST(ImageCodec, AFlippedBitInPngPixelsIsNoticed) {
  const ByteVector pixels(300, 77);
  ByteVector bytes = png(10, 10, PNG_FORMAT_RGB, pixels.data());
  bytes[bytes.size() - 20] ^= 4;  // inside the last data chunk or its checksum
  EXPECT_NE(message_of<FileError>([&] { decode_image(bytes, "p.png"); }), "");
}
#endif

}  // namespace
}  // namespace cohort::data::test
