#include "data/cifar.h"

#include "core/error.h"
#include "data/support.h"

namespace cohort::data::test {
namespace {

using ::testing::HasSubstr;

TEST(Cifar, ReadsRecordsOfBothKinds) {
  for (const CifarKind kind : {CifarKind::kTen, CifarKind::kHundred}) {
    ImageArray images;
    parse_cifar(cifar_records(15, kind == CifarKind::kHundred), kind, "x", images);
    ASSERT_EQ(images.size(), 15);
    EXPECT_EQ(images.shape, (SampleShape{3, 32, 32}));
    EXPECT_EQ(images.labels[12], kind == CifarKind::kTen ? 2 : 12);
    EXPECT_EQ(images.pixels[12 * 3072], 12);
    EXPECT_EQ(images.pixels[12 * 3072 + 3071], (12 + 3071) % 256);
  }
}

TEST(Cifar, SeveralFilesFollowEachOther) {
  const TemporaryFolder folder;
  const std::vector<std::filesystem::path> files = {folder.write("a", cifar_records(2, false)),
                                                    folder.write("b", cifar_records(3, false))};
  const ImageArray images = read_cifar(files, CifarKind::kTen);
  EXPECT_EQ(images.labels, (ByteVector{0, 1, 0, 1, 2}));
  EXPECT_EQ(images.pixels.size(), 5U * 3072);
}

TEST(Cifar, WrongLengthsAreRefused) {
  ByteVector bytes = cifar_records(2, false);
  ImageArray images;
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{3072}, bytes.size() - 1}) {
    EXPECT_THAT(message_of<FileError>([&] {
                  parse_cifar(std::span(bytes).first(size), CifarKind::kTen, "batch", images);
                }),
                HasSubstr("batch: has " + std::to_string(size) + " bytes"));
  }
  EXPECT_THAT(
      message_of<FileError>([&] { parse_cifar(bytes, CifarKind::kHundred, "batch", images); }),
      HasSubstr("3074"));
}

TEST(Cifar, LabelsOutOfRangeNameTheRecordAndLeaveNothingBehind) {
  ByteVector ten = cifar_records(3, false);
  ten[2 * 3073] = 10;
  ImageArray images;
  EXPECT_THAT(message_of<FileError>([&] { parse_cifar(ten, CifarKind::kTen, "b", images); }),
              HasSubstr("b: record 2 has label 10"));
  ByteVector coarse = cifar_records(3, true);
  coarse[3074] = 20;
  EXPECT_THAT(message_of<FileError>([&] { parse_cifar(coarse, CifarKind::kHundred, "b", images); }),
              HasSubstr("record 1 has label 20"));
  ByteVector fine = cifar_records(3, true);
  fine[3075] = 100;
  EXPECT_THAT(message_of<FileError>([&] { parse_cifar(fine, CifarKind::kHundred, "b", images); }),
              HasSubstr("record 1 has label 100"));
  EXPECT_EQ(images.size(), 0);
}

TEST(Cifar, HasTenAndAHundredClassNames) {
  EXPECT_EQ(cifar_class_names(CifarKind::kTen).size(), 10U);
  EXPECT_EQ(cifar_class_names(CifarKind::kHundred).size(), 100U);
  EXPECT_TRUE(std::is_sorted(cifar_class_names(CifarKind::kHundred).begin(),
                             cifar_class_names(CifarKind::kHundred).end()));
}

}  // namespace
}  // namespace cohort::data::test
