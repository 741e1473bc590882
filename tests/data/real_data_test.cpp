// Real data sets, where they are installed; skipped elsewhere.
#include <cmath>

#include "data/registry.h"
#include "data/support.h"
#include "data/survey.h"

namespace cohort::data::test {
namespace {

namespace fs = std::filesystem;

std::pair<double, double> mean_and_deviation(const Dataset& data) {
  double sum = 0;
  double squares = 0;
  double count = 0;
  for (std::int64_t i = 0; i < data.size(); i += 7) {
    for (const float value : read_sample(data, i)) {
      sum += value;
      squares += value * value;
      ++count;
    }
  }
  const double mean = sum / count;
  return {mean, std::sqrt(squares / count - mean * mean)};
}

void check_mnist_like(const std::string& name, const fs::path& folder) {
  if (!fs::is_directory(folder)) GTEST_SKIP() << folder << " is not here";
  DataRequest request;
  request.name = name;
  request.search = {folder};
  const auto splits = load_data(request);
  EXPECT_EQ(splits->train->size(), 60000);
  EXPECT_EQ(splits->test->size(), 10000);
  EXPECT_EQ(splits->train->shape(), (SampleShape{1, 28, 28}));
  const auto [mean, deviation] = mean_and_deviation(*splits->train);
  EXPECT_NEAR(mean, 0.0, 0.02);
  EXPECT_NEAR(deviation, 1.0, 0.02);
}

TEST(RealData, FashionMnistIsNormalisedToMeanZeroAndDeviationOne) {
  check_mnist_like("fashion-mnist", "/usr/share/datasets/fashion-mnist");
  DataRequest request;
  request.name = "fashion-mnist";
  request.search = {"/usr/share/datasets"};
  if (!fs::is_directory("/usr/share/datasets/fashion-mnist")) return;
  const DataReport report = verify(request);
  EXPECT_EQ(report.problem, "");
  EXPECT_EQ(report.train_histogram, std::vector<std::int64_t>(10, 6000));
}

#ifdef COHORT_REAL_DATA
TEST(RealData, MnistIsNormalisedToMeanZeroAndDeviationOne) {
  check_mnist_like("mnist", fs::path(COHORT_REAL_DATA) / "mnist");
}

#ifdef COHORT_WITH_JPEG
TEST(RealData, PhotographsDecode) {
  DataRequest request;
  request.name = "image-folder";
  request.search = {fs::path(COHORT_REAL_DATA) / "imagenette-mini"};
  if (!fs::is_directory(request.search[0])) GTEST_SKIP();
  const DataReport report = verify(request);
  EXPECT_EQ(report.problem, "");
  EXPECT_EQ(report.classes, 10);
  const auto splits = load_data(request);
  const std::vector<float> sample = read_sample(*splits->train, 0, 9);
  EXPECT_EQ(sample, read_sample(*splits->train, 0, 9));
  EXPECT_NE(sample, read_sample(*splits->train, 0, 10));
}
#endif
#endif

}  // namespace
}  // namespace cohort::data::test
