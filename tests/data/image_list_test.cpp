#include "data/image_list.h"

#include "core/error.h"
#include "data/registry.h"
#include "data/support.h"

namespace cohort::data::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ByteVector bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

TEST(ImageList, ReadsPathsAndLabelsRelativeToTheFile) {
  const TemporaryFolder folder;
  const auto file = folder.write(
      "train_list.txt", bytes_of("train/a/1.jpg 2\n\n  train/b c/2.png\t0 \r\n/else/3.jpg 1"));
  const ImageListing listing = read_image_list(file);
  ASSERT_EQ(listing.entries.size(), 3U);
  EXPECT_EQ(listing.entries[0].file, folder.path() / "train/a/1.jpg");
  EXPECT_EQ(listing.entries[0].label, 2);
  EXPECT_EQ(listing.entries[1].file, folder.path() / "train/b c/2.png");
  EXPECT_EQ(listing.entries[1].label, 0);
  EXPECT_EQ(listing.entries[2].file, "/else/3.jpg");
  EXPECT_THAT(listing.class_names, ElementsAre("0", "1", "2"));
}

TEST(ImageList, NamesTheLineThatIsWrong) {
  const TemporaryFolder folder;
  for (const char* line : {"a.jpg", "a.jpg x", "a.jpg -1", "a.jpg 1.5", "a.jpg 1000000"}) {
    const auto file = folder.write("list.txt", bytes_of(std::string("b.jpg 0\n") + line + "\n"));
    EXPECT_THAT(message_of<FileError>([&] { read_image_list(file); }), HasSubstr("list.txt:2: "))
        << line;
  }
  const auto empty = folder.write("list.txt", bytes_of("\n \n"));
  EXPECT_THAT(message_of<FileError>([&] { read_image_list(empty); }),
              HasSubstr("names no pictures"));
}

TEST(ImageList, IsADataSetWithTheTrainingSetsClasses) {
  const TemporaryFolder folder;
  folder.write("train_list.txt", bytes_of("a.jpg 0\nb.jpg 3\nc.jpg 0\n"));
  folder.write("val_list.txt", bytes_of("d.jpg 1\n"));
  DataRequest request;
  request.name = "image-list";
  request.search = {folder.path()};
  request.image_size = 8;
  const auto splits = load_data(request);
  EXPECT_EQ(splits->train->size(), 3);
  EXPECT_EQ(splits->train->label(1), 3);
  EXPECT_EQ(splits->test->class_names().size(), 4U);
  EXPECT_EQ(splits->test->shape(), (SampleShape{3, 8, 8}));
  EXPECT_EQ(splits->found_at, folder.path());
  EXPECT_THAT(message_of<FileError>([&] { read_sample(*splits->test, 0); }), HasSubstr("d.jpg"));
  folder.write("val_list.txt", bytes_of("d.jpg 4\n"));
  EXPECT_THAT(message_of<FileError>([&] { load_data(request); }),
              HasSubstr("label 4 is not among those of the training set, 0 to 3"));
  std::filesystem::remove(folder.path() / "val_list.txt");
  EXPECT_THAT(message_of<FileError>([&] { load_data(request); }), HasSubstr("lacks val_list.txt"));
}

#ifdef COHORT_WITH_JPEG
TEST(ImageList, ReadsItsPictures) {
  const TemporaryFolder folder;
  folder.write("pictures/red.jpg", jpeg(20, 20, {200, 0, 0}));
  folder.write("train_list.txt", bytes_of("pictures/red.jpg 0\n"));
  folder.write("val_list.txt", bytes_of("pictures/red.jpg 0\n"));
  DataRequest request;
  request.name = "image-list";
  request.search = {folder.path()};
  request.image_size = 8;
  request.normalize = "none";
  const auto splits = load_data(request);
  EXPECT_NEAR(read_sample(*splits->test, 0)[0], 200 / 255.0, 0.02);
  EXPECT_NEAR(read_sample(*splits->train, 0)[64], 0, 0.02);
}
#endif

}  // namespace
}  // namespace cohort::data::test
