#include "data/registry.h"

#include "core/error.h"
#include "data/locate.h"
#include "data/support.h"

namespace cohort::data::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

DataRequest request_of(const std::string& name, const std::filesystem::path& folder) {
  DataRequest request;
  request.name = name;
  request.search = {folder};
  return request;
}

void write_small_cifar(const TemporaryFolder& folder) {
  for (int i = 1; i <= 5; ++i) {
    folder.write("cifar-10-batches-bin/data_batch_" + std::to_string(i) + ".bin",
                 cifar_records(4, false));
  }
  folder.write("cifar-10-batches-bin/test_batch.bin", cifar_records(3, false));
  folder.write("cifar-100-binary/train.bin", cifar_records(30, true));
  folder.write("cifar-100-binary/test.bin", cifar_records(7, true));
}

TEST(DataRegistry, ListsTheTenSets) {
  EXPECT_THAT(data_sets().names(),
              ElementsAre("fashion-mnist", "mnist", "cifar-10", "cifar-100", "image-folder",
                          "image-list", "wikitext-2", "ptb", "text", "synthetic"));
  EXPECT_THROW(load_data(request_of("mnits", "/")), ConfigError);
}

TEST(DataRegistry, FindsMnistUnderItsUsualNamesAndReadsIt) {
  for (const char* below : {"mnist/", "MNIST/raw/", ""}) {
    const TemporaryFolder folder;
    write_small_mnist(folder, below, 12, 5);
    const auto splits = load_data(request_of("mnist", folder.path()));
    EXPECT_EQ(splits->train->size(), 12);
    EXPECT_EQ(splits->test->size(), 5);
    EXPECT_EQ(splits->train->shape(), (SampleShape{1, 2, 3}));
    EXPECT_EQ(splits->train->label(11), 1);
    EXPECT_NEAR(read_sample(*splits->train, 2)[1], (13 / 255.0 - 0.1307) / 0.3081, 1e-6);
  }
}

TEST(DataRegistry, TheDottedSpellingIsFoundToo) {
  const TemporaryFolder folder;
  for (const char* split : {"train", "t10k"}) {
    folder.write(std::string(split) + "-images.idx3-ubyte", idx({1, 1, 1}, {7}));
    folder.write(std::string(split) + "-labels.idx1-ubyte", idx({1}, {7}));
  }
  EXPECT_EQ(load_data(request_of("mnist", folder.path()))->test->size(), 1);
}

TEST(DataRegistry, ASetIsNotTakenForItsNamesake) {
  const TemporaryFolder folder;
  write_small_mnist(folder, "fashion-mnist/", 3, 3);
  write_small_mnist(folder, "KMNIST/raw/", 3, 3);
  EXPECT_EQ(load_data(request_of("fashion-mnist", folder.path() / "fashion-mnist"))->train->size(),
            3);
  for (const auto& pair :
       {std::pair("mnist", "fashion-mnist"), std::pair("mnist", "fashion-mnist/"),
        std::pair("mnist", "KMNIST/raw"), std::pair("fashion-mnist", "KMNIST/raw")}) {
    const DataRequest request = request_of(pair.first, folder.path() / pair.second);
    EXPECT_THAT(message_of<FileError>([&] { load_data(request); }),
                HasSubstr("named after another data set"));
  }
}

TEST(DataRegistry, TheNamesakesLabelsAreRecognised) {
  const TemporaryFolder folder;
  write_small_mnist(folder, "", 12, 3);
  folder.write("train-labels-idx1-ubyte", idx({12}, {9, 0, 0, 3, 0, 2, 7, 2, 5, 5, 0, 9}));
  EXPECT_THAT(message_of<FileError>([&] { load_data(request_of("mnist", folder.path())); }),
              HasSubstr("Fashion-MNIST"));
  EXPECT_NO_THROW(load_data(request_of("fashion-mnist", folder.path())));
}

TEST(DataRegistry, AMissingSetSaysWhereItLookedWhatLackedAndWhatToDo) {
  const TemporaryFolder folder;
  write_small_mnist(folder, "mnist/", 3, 3);
  std::filesystem::remove(folder.path() / "mnist/t10k-labels-idx1-ubyte");
  DataRequest request = request_of("mnist", folder.path());
  request.search.emplace_back("/nonexistent");
  const std::string message = message_of<FileError>([&] { load_data(request); });
  EXPECT_THAT(message,
              HasSubstr((folder.path() / "mnist").string() + " (lacks t10k-labels-idx1-ubyte"));
  EXPECT_THAT(message, HasSubstr("/nonexistent (there is no such folder)"));
  EXPECT_THAT(message, HasSubstr("--data-dir"));
  request.name = "fashion-mnist";
  EXPECT_THAT(message_of<FileError>([&] { load_data(request); }),
              HasSubstr("dataset-fashion-mnist"));
  request.name = "image-folder";
  EXPECT_THAT(message_of<FileError>([&] { load_data(request); }), HasSubstr("train/<class>"));
}

TEST(DataRegistry, ReadsBothCifars) {
  const TemporaryFolder folder;
  write_small_cifar(folder);
  const auto ten = load_data(request_of("cifar-10", folder.path()));
  EXPECT_EQ(ten->train->size(), 20);
  EXPECT_EQ(ten->test->size(), 3);
  EXPECT_EQ(ten->train->class_names()[9], "truck");
  EXPECT_EQ(ten->found_at, folder.path() / "cifar-10-batches-bin");
  const auto hundred = load_data(request_of("cifar-100", folder.path()));
  EXPECT_EQ(hundred->train->size(), 30);
  EXPECT_EQ(hundred->train->label(29), 29);
  EXPECT_EQ(hundred->train->class_names().size(), 100U);
}

TEST(DataRegistry, OnlyCifarTrainingDataAreAugmentedUnlessAsked) {
  const TemporaryFolder folder;
  write_small_cifar(folder);
  write_small_mnist(folder, "mnist/", 3, 3);
  const auto varies = [](const Dataset& data) {
    for (std::uint64_t key = 1; key < 20; ++key) {
      if (read_sample(data, 0, key) != read_sample(data, 0, 0)) return true;
    }
    return false;
  };
  DataRequest request = request_of("cifar-10", folder.path());
  EXPECT_TRUE(varies(*load_data(request)->train));
  EXPECT_FALSE(varies(*load_data(request)->test));
  request.augment = "none";
  EXPECT_FALSE(varies(*load_data(request)->train));
  request.name = "mnist";
  request.augment = "auto";
  EXPECT_FALSE(varies(*load_data(request)->train));
  request.augment = "crop-flip";
  EXPECT_TRUE(varies(*load_data(request)->train));
  request.augment = "resized-crop";
  EXPECT_THROW(load_data(request), ConfigError);
  request.augment = "crop-flop";
  EXPECT_THROW(load_data(request), ConfigError);
}

TEST(DataRegistry, SizesNormalisationAndImageSizeAreObeyed) {
  const TemporaryFolder folder;
  write_small_cifar(folder);
  DataRequest request = request_of("cifar-10", folder.path());
  request.train_size = 6;
  request.test_size = 2;
  request.normalize = "none";
  request.augment = "none";
  auto splits = load_data(request);
  EXPECT_EQ(splits->train->size(), 6);
  EXPECT_EQ(splits->test->size(), 2);
  EXPECT_FLOAT_EQ(read_sample(*splits->train, 0)[51], 51 / 255.0F);
  request.normalize = "half";
  request.image_size = 64;
  splits = load_data(request);
  EXPECT_EQ(splits->train->shape(), (SampleShape{3, 64, 64}));
  EXPECT_FLOAT_EQ(read_sample(*splits->train, 0)[0], -1.0F);
  request.train_size = 21;
  EXPECT_THAT(message_of<ConfigError>([&] { load_data(request); }),
              HasSubstr("has 20 training samples"));
  request.train_size = 0;
  request.image_size = 100000;
  EXPECT_THROW(load_data(request), ConfigError);
}

TEST(DataRegistry, TheFirstTrainingSamplesCanBeLeftOut) {
  const TemporaryFolder folder;
  write_small_mnist(folder, "MNIST_data/", 12, 5);
  DataRequest request = request_of("mnist", folder.path() / "MNIST_data");
  const auto whole = load_data(request);
  request.train_skip = 3;
  auto rest = load_data(request);
  ASSERT_EQ(rest->train->size(), 9);
  EXPECT_EQ(rest->test->size(), 5);
  for (std::int64_t i = 0; i < 9; ++i) {
    EXPECT_EQ(rest->train->label(i), whole->train->label(i + 3));
    EXPECT_EQ(read_sample(*rest->train, i), read_sample(*whole->train, i + 3));
  }
  request.train_size = 2;  // of those that are left
  rest = load_data(request);
  ASSERT_EQ(rest->train->size(), 2);
  EXPECT_EQ(rest->train->label(0), 3);
  request.train_size = 10;
  EXPECT_THAT(message_of<ConfigError>([&] { load_data(request); }),
              HasSubstr("has 9 training samples"));
  request.train_skip = 12;
  EXPECT_THAT(message_of<ConfigError>([&] { load_data(request); }),
              HasSubstr("leaving out the first 12 leaves none"));
  DataRequest generated;
  generated.name = "synthetic";
  generated.train_skip = 1;
  EXPECT_THROW(load_data(generated), ConfigError);
}

TEST(DataRegistry, SyntheticDataNeedNoFolder) {
  DataRequest request;
  request.name = "synthetic";
  request.synthetic_shape = {2, 5, 6};
  request.synthetic_classes = 4;
  request.train_size = 11;
  const auto splits = load_data(request);
  EXPECT_EQ(splits->train->size(), 11);
  EXPECT_EQ(splits->test->size(), 10000);
  EXPECT_EQ(splits->test->shape(), (SampleShape{2, 5, 6}));
  EXPECT_NE(read_sample(*splits->train, 0), read_sample(*splits->test, 0));
}

}  // namespace
}  // namespace cohort::data::test
