#include "data/array_dataset.h"

#include <set>

#include "data/support.h"

namespace cohort::data::test {
namespace {

ImageArray counting_images(std::int64_t channels, std::int64_t side, int count) {
  ImageArray images;
  images.shape = {channels, side, side};
  images.labels.assign(static_cast<std::size_t>(count), 1);
  for (std::int64_t i = 0; i < images.shape.numel() * count; ++i) {
    images.pixels.push_back(static_cast<std::uint8_t>(1 + i * 7 % 251));
  }
  return images;
}

TEST(ArrayDataset, NormalisesEveryChannelByItsOwnMeanAndDeviation) {
  const ImageArray images = counting_images(2, 3, 4);
  const ArrayDataset data(images, {{"a", "b"}, {{0.25, 0.5}, {0.5, 2.0}}});
  const std::vector<float> sample = read_sample(data, 3);
  ASSERT_EQ(sample.size(), 18U);
  for (std::size_t i = 0; i < 18; ++i) {
    const double value = images.pixels[3 * 18 + i] / 255.0;
    EXPECT_FLOAT_EQ(sample[i],
                    static_cast<float>(i < 9 ? (value - 0.25) / 0.5 : (value - 0.5) / 2.0));
  }
  EXPECT_EQ(data.label(3), 1);
}

// The oracle pads, cuts and mirrors in the plainest way.
std::vector<float> shifted(const ImageArray& images, int down, int right, bool mirror) {
  const auto side = static_cast<int>(images.shape.height);
  std::vector<float> out;
  for (int c = 0; c < images.shape.channels; ++c) {
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) {
        const int from_y = y + down;
        const int from_x = (mirror ? side - 1 - x : x) + right;
        const bool inside = from_y >= 0 && from_y < side && from_x >= 0 && from_x < side;
        const int place = (c * side + from_y) * side + from_x;
        out.push_back(
            inside ? static_cast<float>(images.pixels[static_cast<std::size_t>(place)] / 255.0)
                   : 0.0F);
      }
    }
  }
  return out;
}

TEST(ArrayDataset, CropFlipGivesEveryShiftAndMirrorAndNothingElse) {
  const ImageArray images = counting_images(2, 9, 1);
  const ArrayDataset data(images, {{"a", "b"}, Normalization::none(2), true});
  std::set<std::vector<float>> expected;
  for (int down = -4; down <= 4; ++down) {
    for (int right = -4; right <= 4; ++right) {
      expected.insert(shifted(images, down, right, false));
      expected.insert(shifted(images, down, right, true));
    }
  }
  ASSERT_EQ(expected.size(), 162U);
  std::set<std::vector<float>> seen;
  for (std::uint64_t key = 0; key < 4000; ++key) seen.insert(read_sample(data, 0, key));
  EXPECT_EQ(seen, expected);
}

TEST(ArrayDataset, SaysWhichShiftASampleIsReadWith) {
  const ImageArray images = counting_images(2, 9, 1);
  const ArrayDataset data(images, {{"a", "b"}, Normalization::none(2), true});
  for (std::uint64_t key = 0; key < 200; ++key) {
    const ImageShift shift = data.shift(key);
    EXPECT_EQ(read_sample(data, 0, key), shifted(images, static_cast<int>(shift.down),
                                                 static_cast<int>(shift.right), shift.mirror));
  }
}

TEST(ArrayDataset, EqualAugmentationKeysGiveEqualSamples) {
  const ArrayDataset data(counting_images(3, 8, 2), {{"a", "b"}, Normalization::half(3), true});
  for (std::uint64_t key = 0; key < 20; ++key) {
    EXPECT_EQ(read_sample(data, 1, key), read_sample(data, 1, key));
  }
}

TEST(ArrayDataset, ImagesSmallerThanThePaddingAreShiftedToo) {
  const ArrayDataset data(counting_images(1, 2, 1), {{"a", "b"}, Normalization::none(1), true});
  for (std::uint64_t key = 0; key < 500; ++key) {
    for (const float value : read_sample(data, 0, key)) EXPECT_LE(value, 1.0F);
  }
}

TEST(ArrayDataset, ResizingKeepsFlatImagesFlatAndRampsStraight) {
  ImageArray images;
  images.shape = {1, 4, 4};
  images.labels = {0};
  for (int i = 0; i < 16; ++i) images.pixels.push_back(static_cast<std::uint8_t>(i % 4 * 60));
  const ArrayDataset data(images, {{"a"}, Normalization::none(1), false, 8});
  EXPECT_EQ(data.shape(), (SampleShape{1, 8, 8}));
  const std::vector<float> sample = read_sample(data, 0);
  // Place x of 8 lies at (x + 0.5) / 2 - 0.5 of the four, clamped at the ends.
  for (std::size_t i = 0; i < 64; ++i) {
    const double place = std::clamp((static_cast<double>(i % 8) + 0.5) / 2 - 0.5, 0.0, 3.0);
    EXPECT_NEAR(sample[i], place * 60 / 255, 1e-6) << i;
  }
}

}  // namespace
}  // namespace cohort::data::test
