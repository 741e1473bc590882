// Batches made in a GPU's memory, beside those that a loader reads.
#include "engine/resident_data.h"

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>

#include "engine/worker_runs.h"

namespace cohort::test {
namespace {

const at::Device kGpu(at::kCUDA, 0);

class OnTheGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!torch::cuda::is_available()) GTEST_SKIP() << "needs a GPU";
  }
};

data::ArrayDataset noise_images(data::SampleShape shape, std::int64_t count, bool crop_flip,
                                std::int64_t image_size) {
  data::ImageArray images;
  images.shape = shape;
  RandomStream random(5, "noise-images", {});
  for (std::int64_t i = 0; i < count; ++i) {
    images.labels.push_back(static_cast<std::uint8_t>(random.below(4)));
    for (std::int64_t pixel = 0; pixel < shape.numel(); ++pixel) {
      images.pixels.push_back(static_cast<std::uint8_t>(random.below(256)));
    }
  }
  const auto channels = static_cast<std::size_t>(shape.channels);
  return data::ArrayDataset(std::move(images), {.class_names = {"a", "b", "c", "d"},
                                                .normalization = {std::vector(channels, 0.4914),
                                                                  std::vector(channels, 0.2023)},
                                                .crop_flip = crop_flip,
                                                .image_size = image_size});
}

// Takes the same steps from a loader and from the GPU; an epoch of the 103 images has 4 of them for
// each of two workers, the last one short.
void expect_equal_batches(const data::Dataset& data, const engine::ResidentData& resident,
                          const engine::BatchPlacement& placement, Step first) {
  const data::SampleOrder order(
      {.samples = data.size(), .batch = 16, .rank = 1, .workers = 2, .seed = 3});
  const Step last = 2 * order.steps_per_epoch();
  data::Loader loader(data, order, {.threads = 0, .first_step = first, .last_step = last});
  const auto source = resident.batches(data, order, first, placement);
  ASSERT_NE(source, nullptr);
  const void* place = nullptr;
  for (Step step = first; step < last; ++step) {
    const engine::BatchTensors expected = engine::to_tensors(loader.next(), data.shape(), {});
    source->wait();
    const engine::BatchTensors made = source->take();
    const auto format =
        placement.channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
    EXPECT_TRUE(made.inputs.is_contiguous(format));
    EXPECT_EQ(made.inputs.scalar_type(), placement.precision);
    EXPECT_TRUE(made.inputs.cpu().equal(expected.inputs.to(placement.precision))) << step;
    EXPECT_TRUE(made.labels.cpu().equal(expected.labels)) << step;
    EXPECT_TRUE(made.stays);
    if (place == nullptr) place = made.inputs.data_ptr();
    EXPECT_EQ(made.inputs.data_ptr(), place);
  }
}

TEST_F(OnTheGpu, BatchesAreThoseOfALoaderToTheBit) {
  struct Case {
    data::SampleShape shape;
    bool crop_flip;
    std::int64_t image_size;
  };
  for (const Case& one :
       {Case{{3, 32, 32}, false, 0}, Case{{3, 32, 32}, true, 0}, Case{{1, 28, 28}, true, 32},
        Case{{3, 32, 32}, true, 77}, Case{{3, 32, 24}, true, 13}, Case{{2, 3, 2}, true, 0}}) {
    data::DataSplits data;
    data.train = std::make_unique<data::ArrayDataset>(
        noise_images(one.shape, 103, one.crop_flip, one.image_size));
    const engine::ResidentData resident(data, std::vector{kGpu});
    for (const bool channels_last : {false, true}) {
      for (const at::ScalarType precision : {at::kFloat, at::kBFloat16}) {
        for (const Step first : {0, 2, 6}) {
          SCOPED_TRACE(testing::Message()
                       << one.shape.height << " to " << one.image_size << ", " << channels_last
                       << ' ' << toString(precision) << " from step " << first);
          expect_equal_batches(*data.train, resident, {kGpu, channels_last, precision}, first);
        }
      }
    }
  }
}

TEST_F(OnTheGpu, OnlySetsOfImagesInMemoryLieThere) {
  config::RunConfig config;
  config.data = "synthetic";
  config.train_size = config.test_size = 64;
  const auto synthetic = engine::open_data(config, {});
  data::DataSplits data;
  data.train = std::make_unique<data::ArrayDataset>(engine::test::small_images(64));
  const data::SampleOrder order({.samples = 64, .batch = 8});
  const engine::BatchPlacement placement{.device = kGpu};
  const engine::ResidentData none(*synthetic, std::vector{kGpu, kGpu});
  EXPECT_EQ(none.batches(*synthetic->train, order, 0, placement), nullptr);
  const engine::ResidentData nowhere(data, std::vector{at::Device(at::kCPU)});
  EXPECT_EQ(nowhere.batches(*data.train, order, 0, placement), nullptr);
  const engine::ResidentData there(data, std::vector{kGpu, kGpu});
  EXPECT_NE(there.batches(*data.train, order, 0, placement), nullptr);
  EXPECT_EQ(there.batches(*synthetic->train, order, 0, placement), nullptr);
  EXPECT_EQ(there.batches(*data.train, order, 0, {}), nullptr);
}

data::DataSplits images() {
  data::DataSplits data;
  data.train =
      std::make_unique<data::ArrayDataset>(engine::test::small_images(200, /*crop_flip=*/true));
  data.test = std::make_unique<data::ArrayDataset>(engine::test::small_images(50, false, 8));
  return data;
}

// Its sums come in the same order in every run.
config::RunConfig image_run(const data::DataSplits& data) {
  config::RunConfig config;
  config.model = "mlp-100";
  config.data = "synthetic";  // which is not looked at
  config.method = "local";
  config.workers = config.threads = 1;
  config.train_size = data.train->size();
  config.test_size = data.test->size();
  config.batch = 32;  // an epoch of six steps and a short one
  config.lr = 0.02;
  config.iterations = 21;
  config.eval_every = 1;
  config.eval_batch = 20;
  config.record_every = 5;
  config.checkpoint_every = 4;
  config.device = "cuda";
  return config;
}

TEST_F(OnTheGpu, TrainingThereIsTrainingOnTheCpu) {
  const data::DataSplits data = images();
  config::RunConfig config = image_run(data);
  const engine::test::RunResult gpu = engine::test::run_group(config, {.data = &data});
  config.device = "cpu";
  const engine::test::RunResult cpu = engine::test::run_group(config, {.data = &data});
  ASSERT_EQ(gpu.records.size(), cpu.records.size());
  for (std::size_t i = 0; i < gpu.records.size(); ++i) {
    EXPECT_NEAR(gpu.records[i].loss, cpu.records[i].loss, 1e-3) << i;
    EXPECT_EQ(gpu.records[i].samples, cpu.records[i].samples);
  }
  ASSERT_EQ(gpu.evaluations.size(), cpu.evaluations.size());
  for (std::size_t i = 0; i < gpu.evaluations.size(); ++i) {
    EXPECT_NEAR(gpu.evaluations[i].loss, cpu.evaluations[i].loss, 1e-3) << i;
  }
}

TEST_F(OnTheGpu, GoesOnInTheMiddleOfAnEpoch) {
  const data::DataSplits data = images();
  for (const bool graph : {true, false}) {
    config::RunConfig config = image_run(data);
    config.graph = graph;
    const engine::test::RunResult calm = engine::test::run_group(config, {.data = &data});
    storage::test::TemporaryFolder folder;
    storage::CheckpointStore store(folder / "run", 3);
    std::atomic<bool> stop = false;
    engine::test::run_group(config, {.store = &store,
                                     .data = &data,
                                     .on_step = [&](Step done) { stop = done >= 11; },
                                     .stop = &stop});
    const engine::test::RunResult resumed =
        engine::test::run_group(config, {.store = &store, .resume = true, .data = &data});
    EXPECT_EQ(resumed.outcomes[0].steps, 21);
    EXPECT_EQ(engine::test::distance(resumed.parameters[0], calm.parameters[0]), 0)
        << "recorded: " << graph;
  }
}

}  // namespace
}  // namespace cohort::test
