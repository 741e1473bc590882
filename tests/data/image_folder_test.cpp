#include "data/image_folder.h"

#include "core/error.h"
#include "data/registry.h"
#include "data/support.h"

namespace cohort::data::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string load_refusal(const TemporaryFolder& folder) {
  DataRequest request;
  request.name = "image-folder";
  request.search = {folder.path()};
  return message_of<FileError>([&] { load_data(request); });
}

TEST(ImageFolder, ClassesAreSortedAndOnlyPicturesAreListed) {
  const TemporaryFolder folder;
  for (const char* name : {"zebra/b.JPEG", "zebra/a.jpg", "ant/x.png", "ant/notes.txt",
                           "ant/.hidden.jpg", ".cache/y.jpg"}) {
    folder.write(name, {1});
  }
  folder.write("readme", {1});
  const ImageListing listing = list_images(folder.path());
  EXPECT_THAT(listing.class_names, ElementsAre("ant", "zebra"));
  ASSERT_EQ(listing.entries.size(), 3U);
  EXPECT_EQ(listing.entries[0].file, folder.path() / "ant/x.png");
  EXPECT_EQ(listing.entries[1].file, folder.path() / "zebra/a.jpg");
  EXPECT_EQ(listing.entries[2].label, 1);
}

// torchvision's ImageFolder, sorted(os.walk()): a folder's own pictures first, then folder by
// folder.
TEST(ImageFolder, PicturesInFoldersOfAClassAreItsOwn) {
  const TemporaryFolder folder;
  for (const char* name : {"cat/z.jpg", "cat/sub/b.jpg", "cat/sub/deep/c.png", "cat/sub-2/a.jpg",
                           "cat/.cache/x.jpg", "dog/only/1.jpg"}) {
    folder.write(name, {1});
  }
  std::filesystem::create_directory_symlink("..", folder.path() / "cat/sub/around");
  const ImageListing listing = list_images(folder.path());
  std::vector<std::string> found;
  for (const ImageListing::Entry& entry : listing.entries) {
    found.push_back(entry.file.lexically_relative(folder.path()).string());
  }
  EXPECT_THAT(found, ElementsAre("cat/z.jpg", "cat/sub/b.jpg", "cat/sub-2/a.jpg",
                                 "cat/sub/deep/c.png", "dog/only/1.jpg"));
  EXPECT_EQ(listing.entries.back().label, 1);
  EXPECT_TRUE(listing.passed_over.empty());
}

TEST(ImageFolder, FilesThatArePassedOverAreCounted) {
  const TemporaryFolder folder;
  for (const char* name : {"train/cat/1.jpg", "train/cat/2.webp", "train/cat/more/3.WebP",
                           "train/cat/4.tiff", "train/readme", "val/cat/1.jpg", "val/cat/2.bmp"}) {
    folder.write(name, {1});
  }
  DataRequest request;
  request.name = "image-folder";
  request.search = {folder.path()};
  EXPECT_THAT(load_data(request)->notes,
              ElementsAre(HasSubstr("training pictures, being neither .jpg, .jpeg nor .png: "
                                    "1 .tiff, 2 .webp, 1 without an ending"),
                          HasSubstr("test pictures, being neither .jpg, .jpeg nor .png: 1 .bmp")));
  std::filesystem::remove(folder.path() / "train/cat/1.jpg");
  EXPECT_THAT(load_refusal(folder),
              AllOf(HasSubstr("train/cat: a class without pictures"), HasSubstr("2 .webp")));
}

TEST(ImageFolder, EmptyFoldersAndForeignClassesAreNamed) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "train");
  std::filesystem::create_directories(folder.path() / "val");
  EXPECT_THAT(load_refusal(folder), HasSubstr((folder.path() / "train").string()));
  std::filesystem::create_directories(folder.path() / "train/cat");
  EXPECT_THAT(load_refusal(folder), HasSubstr("train/cat: a class without pictures"));
  folder.write("train/cat/a.jpg", {1});
  folder.write("val/dog/a.jpg", {1});
  EXPECT_THAT(load_refusal(folder), HasSubstr("val/dog: this class is not among"));
}

TEST(ImageFolder, AClassWithoutTestPicturesKeepsItsLabel) {
  const TemporaryFolder folder;
  folder.write("train/a/1.jpg", {1});
  folder.write("train/b/1.jpg", {1});
  folder.write("val/b/1.jpg", {1});
  DataRequest request;
  request.name = "image-folder";
  request.search = {folder.path()};
  const auto splits = load_data(request);
  EXPECT_THAT(splits->test->class_names(), ElementsAre("a", "b"));
  EXPECT_EQ(splits->test->label(0), 1);
  std::vector<float> out(static_cast<std::size_t>(splits->test->shape().numel()));
  EXPECT_THAT(message_of<FileError>([&] { splits->test->read(0, 0, out); }),
              HasSubstr("val/b/1.jpg"));
}

TEST(ImageFolder, APartOfASetHasAllItsClasses) {
  ImageListing listing;
  listing.class_names = {"a", "b"};
  for (const auto& [file, label] : std::vector<std::pair<const char*, int>>{
           {"a1", 0}, {"a2", 0}, {"a3", 0}, {"b1", 1}, {"b2", 1}}) {
    listing.entries.push_back({file, label});
  }
  keep_first(listing, 3);
  ASSERT_EQ(listing.entries.size(), 3U);
  EXPECT_EQ(listing.entries[0].file, "a1");
  EXPECT_EQ(listing.entries[1].file, "b1");
  EXPECT_EQ(listing.entries[2].file, "a2");
}

TEST(ImageFolder, LeavingOutTheFirstIsTheRestOfKeepingThem) {
  ImageListing listing;
  listing.class_names = {"a", "b"};
  for (const auto& [file, label] : std::vector<std::pair<const char*, int>>{
           {"a1", 0}, {"a2", 0}, {"a3", 0}, {"b1", 1}, {"b2", 1}}) {
    listing.entries.push_back({file, label});
  }
  drop_first(listing, 3);
  ASSERT_EQ(listing.entries.size(), 2U);
  EXPECT_EQ(listing.entries[0].file, "a3");
  EXPECT_EQ(listing.entries[1].file, "b2");
}

#ifdef COHORT_WITH_JPEG
// What torchvision makes of it: the whole picture decoded, then Resize and CenterCrop.
TEST(ImageFolder, LargePicturesHaveThePixelsOfTheWholeOneUnlessToldOtherwise) {
  const TemporaryFolder folder;
  const ByteVector file = noisy_jpeg(96, 64);
  ImageListing listing;
  listing.class_names = {"a"};
  listing.entries.push_back({folder.write("1.jpg", file), 0});
  const Image whole = decode_image(file, "1.jpg");
  const Image resized = resized_crop(whole, {0, 0, 96, 64}, {27, 18});
  std::vector<float> expected(3 * 16 * 16);
  write_normalized(resized, {6, 1, 16, 16}, false, NormalizeTable(Normalization::none(3)),
                   expected);
  ImageFolderOptions options{16, ImageAugmentation::kNone, Normalization::none(3)};
  EXPECT_EQ(read_sample(ImageFolder(listing, options), 0, 5), expected);
  options.fast_decode = true;
  EXPECT_NE(read_sample(ImageFolder(listing, options), 0, 5), expected);
}

TEST(ImageFolder, EveryAugmentationKeepsAFlatPictureFlat) {
  const TemporaryFolder folder;
  ImageListing listing;
  listing.class_names = {"a"};
  const std::vector<std::pair<int, int>> sizes = {
      {40, 30}, {30, 300}, {1, 1}, {900, 2}, {700, 600}};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    listing.entries.push_back({folder.write(std::to_string(i) + ".jpg",
                                            jpeg(sizes[i].first, sizes[i].second, {200, 100, 50})),
                               0});
  }
  for (const ImageAugmentation augmentation :
       {ImageAugmentation::kNone, ImageAugmentation::kCropFlip, ImageAugmentation::kResizedCrop}) {
    const ImageFolder data(listing, {32, augmentation, Normalization::none(3)});
    for (std::int64_t i = 0; i < data.size(); ++i) {
      const std::vector<float> sample = read_sample(data, i, 5);
      ASSERT_EQ(sample.size(), 3U * 32 * 32);
      for (std::size_t p = 0; p < sample.size(); ++p) {
        const double expected = p < 1024 ? 200 : p < 2048 ? 100 : 50;
        ASSERT_NEAR(sample[p] * 255, expected, 4);
      }
    }
  }
}
#endif

}  // namespace
}  // namespace cohort::data::test
