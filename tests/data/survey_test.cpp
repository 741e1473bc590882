#include "data/survey.h"

#include "core/error.h"
#include "data/support.h"

namespace cohort::data::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Survey, SaysOfEverySetWhetherAndWhereItIs) {
  const TemporaryFolder folder;
  write_small_mnist(folder, "mnist/", 12, 5);
  folder.write("cifar-100-binary/train.bin", cifar_records(3, true));
  folder.write("cifar-100-binary/test.bin", {1, 2, 3});
  const std::vector<std::filesystem::path> search = {folder.path()};
  const std::vector<DataReport> reports = survey(search);
  ASSERT_EQ(reports.size(), data_sets().entries().size());
  for (const DataReport& report : reports) {
    if (report.name == "mnist") {
      EXPECT_TRUE(report.found);
      EXPECT_EQ(report.folder, folder.path() / "mnist");
      EXPECT_EQ(report.train, 12);
      EXPECT_EQ(report.test, 5);
      EXPECT_EQ(report.shape, (SampleShape{1, 2, 3}));
      EXPECT_EQ(report.problem, "");
      EXPECT_EQ(report.notes.size(), 1U);
    } else if (report.name == "cifar-100") {
      EXPECT_TRUE(report.found);
      EXPECT_THAT(report.problem, HasSubstr("test.bin: has 3 bytes"));
    } else if (report.name == "synthetic") {
      EXPECT_TRUE(report.found);
    } else {
      EXPECT_FALSE(report.found) << report.name;
      EXPECT_THAT(report.problem, HasSubstr("was not found"));
    }
  }
}

TEST(Survey, VerifyingCountsLabelsAndFindsDamage) {
  const TemporaryFolder folder;
  write_small_mnist(folder, "mnist/", 12, 5);
  DataRequest request;
  request.name = "mnist";
  request.search = {folder.path()};
  DataReport report = verify(request);
  EXPECT_EQ(report.problem, "");
  EXPECT_THAT(report.train_histogram, ElementsAre(2, 2, 1, 1, 1, 1, 1, 1, 1, 1));
  EXPECT_THAT(report.test_histogram, ElementsAre(1, 1, 1, 1, 1, 0, 0, 0, 0, 0));
  folder.write("mnist/t10k-labels-idx1-ubyte", idx({5}, {0, 1, 2, 3}));
  report = verify(request);
  EXPECT_TRUE(report.found);
  EXPECT_THAT(report.problem, HasSubstr("t10k-labels-idx1-ubyte: truncated"));
  request.name = "nothing";
  EXPECT_THROW(verify(request), ConfigError);
}

#ifdef COHORT_WITH_JPEG
TEST(Survey, VerifyingAnImageFolderDecodesEveryPictureAndNamesTheBad) {
  const TemporaryFolder folder;
  const ByteVector good = jpeg(30, 30, {9, 99, 199});
  folder.write("train/a/1.jpg", good);
  folder.write("train/b/2.jpg", ByteVector(good.begin(), good.end() - 40));
  folder.write("val/a/3.jpg", good);
  folder.write("val/b/4.png", {});
  DataRequest request;
  request.name = "image-folder";
  request.search = {folder.path()};
  const DataReport report = verify(request);
  EXPECT_EQ(report.bad_files, 2);
  EXPECT_THAT(report.problem, HasSubstr("2 pictures"));
  EXPECT_THAT(report.bad_file_messages,
              ElementsAre(HasSubstr("train/b/2.jpg"), HasSubstr("val/b/4.png")));
  EXPECT_THAT(report.train_histogram, ElementsAre(1, 1));
}
#endif

}  // namespace
}  // namespace cohort::data::test
