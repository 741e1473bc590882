#include "data/image_transform.h"

#include <cmath>

#include "data/support.h"

namespace cohort::data::test {
namespace {

Image patterned(int width, int height) {
  Image image{{width, height}, {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      image.pixels.push_back(static_cast<std::uint8_t>(x * 37 + y * 11));
      image.pixels.push_back(static_cast<std::uint8_t>(x * x * 5 + y * 29));
      image.pixels.push_back(static_cast<std::uint8_t>(x * 13 + y * y * 7));
    }
  }
  return image;
}

// The expected bytes were computed with PIL 9.4, Image.crop().resize(BILINEAR).
TEST(ImageTransform, ResizesBitForBitAsPilDoes) {
  EXPECT_EQ(resized_crop(patterned(7, 5), {0, 0, 7, 5}, {3, 2}).pixels,
            (ByteVector{43, 35, 23, 122, 79, 51, 201, 160, 79, 65, 93, 79, 144, 137, 107, 194, 156,
                        135}));
  EXPECT_EQ(
      resized_crop(patterned(13, 11), {2, 1, 10, 9}, {5, 4}).pixels,
      (ByteVector{120, 92,  62,  187, 152, 86,  133, 121, 112, 79,  130, 138, 145, 109, 161,
                  142, 151, 139, 188, 164, 163, 92,  102, 161, 101, 126, 159, 167, 141, 182,
                  168, 197, 112, 170, 122, 127, 74,  127, 115, 127, 126, 113, 193, 115, 136,
                  190, 111, 155, 129, 92,  124, 75,  164, 95,  149, 122, 121, 215, 147, 144}));
  const Image larger = resized_crop(patterned(4, 3), {0, 0, 4, 3}, {9, 7});
  EXPECT_EQ(ByteVector(larger.pixels.begin() + 27, larger.pixels.begin() + 54),
            (ByteVector{2,  4,  1,  8,  5,  3,  25, 7,   9,  41, 10,  15, 58, 17,
                        21, 74, 23, 26, 90, 34, 32, 107, 45, 38, 113, 49, 40}));
}

TEST(ImageTransform, TheWeightsOfEveryPlaceAddUpToOne) {
  for (const auto& [from, to] : {std::pair(1, 5), std::pair(5, 1), std::pair(160, 224),
                                 std::pair(500, 224), std::pair(31, 30), std::pair(7, 7)}) {
    const ResampleAxis axis = resample_axis(from, to);
    ASSERT_EQ(axis.first.size(), static_cast<std::size_t>(to));
    for (std::size_t i = 0; i < axis.first.size(); ++i) {
      double sum = 0;
      for (int k = 0; k < axis.count[i]; ++k) sum += axis.weights_of(i)[k];
      EXPECT_NEAR(sum, 1.0, 1e-6);
      EXPECT_GE(axis.first[i], 0);
      EXPECT_LE(axis.first[i] + axis.count[i], from);
      EXPECT_LE(static_cast<std::size_t>(axis.count[i]), axis.taps);
    }
  }
}

TEST(ImageTransform, ResizedCropsLieInsideAndHavePermittedAreasAndRatios) {
  const ImageSize size{160, 120};
  RandomStream random(7);
  double total_area = 0;
  constexpr int kDraws = 4000;
  for (int i = 0; i < kDraws; ++i) {
    const CropBox box = random_resized_crop(size, random);
    ASSERT_GE(box.x, 0);
    ASSERT_GE(box.y, 0);
    ASSERT_LE(box.x + box.width, size.width);
    ASSERT_LE(box.y + box.height, size.height);
    const double share = box.width * box.height / (160.0 * 120.0);
    EXPECT_GT(share, 0.07);
    EXPECT_NEAR(std::log(static_cast<double>(box.width) / box.height), 0.0,
                std::log(4.0 / 3) + 0.05);
    total_area += share;
  }
  // Uniform on [.08, 1] has mean .54; refused tries (tall crops of a wide picture) lower it to the
  // .4350 that 200,000 draws of torchvision's algorithm written in Python give.
  EXPECT_NEAR(total_area / kDraws, 0.4350, 0.015);
}

TEST(ImageTransform, AVeryLongPictureFallsBackToItsCentre) {
  RandomStream random(3);
  bool fallen_back = false;
  for (int i = 0; i < 200; ++i) {
    const CropBox box = random_resized_crop({2000, 10}, random);
    fallen_back = fallen_back || box == CropBox{(2000 - 13) / 2, 0, 13, 10};
  }
  EXPECT_TRUE(fallen_back);
  EXPECT_EQ(random_resized_crop({1, 1}, random), (CropBox{0, 0, 1, 1}));
  EXPECT_EQ(without_long_ends({2000, 10}), (CropBox{960, 0, 80, 10}));
  EXPECT_EQ(without_long_ends({30, 10}), (CropBox{0, 0, 30, 10}));
}

TEST(ImageTransform, ShorterSideAndCentreAreTorchvisions) {
  EXPECT_EQ(shorter_side_to({500, 375}, 256), (ImageSize{341, 256}));
  EXPECT_EQ(shorter_side_to({375, 500}, 256), (ImageSize{256, 341}));
  EXPECT_EQ(centre_square({341, 256}, 224), (CropBox{58, 16, 224, 224}));
}

TEST(ImageTransform, ReductionNeverGoesBelowTheWantedSize) {
  EXPECT_EQ(permitted_reduction({0, 0, 1792, 1792}, {224, 224}), 8);
  EXPECT_EQ(permitted_reduction({0, 0, 1791, 1792}, {224, 224}), 4);
  EXPECT_EQ(permitted_reduction({0, 0, 448, 900}, {224, 224}), 2);
  EXPECT_EQ(permitted_reduction({0, 0, 100, 900}, {224, 224}), 1);
  EXPECT_EQ(scale_box({100, 50, 200, 100}, {400, 200}, {200, 100}), (CropBox{50, 25, 100, 50}));
  EXPECT_EQ(scale_box({399, 199, 1, 1}, {400, 200}, {50, 25}), (CropBox{49, 24, 1, 1}));
}

TEST(ImageTransform, NormalisingTurnsPixelsIntoPlanes) {
  const Image image = patterned(4, 3);
  const NormalizeTable table(Normalization::none(3));
  std::vector<float> out(3 * 2 * 2);
  for (const bool mirror : {false, true}) {
    write_normalized(image, {1, 1, 2, 2}, mirror, table, out);
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t y = 0; y < 2; ++y) {
        for (std::size_t x = 0; x < 2; ++x) {
          const std::size_t from = ((y + 1) * 4 + 1 + (mirror ? 1 - x : x)) * 3 + c;
          EXPECT_FLOAT_EQ(out[(c * 2 + y) * 2 + x], static_cast<float>(image.pixels[from] / 255.0));
        }
      }
    }
  }
}

}  // namespace
}  // namespace cohort::data::test
