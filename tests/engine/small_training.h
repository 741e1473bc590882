// Networks, images and a whole training set-up small enough to run hundreds of steps in a test.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/relu.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/random.h"
#include "data/array_dataset.h"
#include "engine/generator.h"
#include "engine/trainer.h"
#include "metrics/memory_sink.h"
#include "models/layers.h"
#include "storage/storage_fixture.h"

namespace cohort::engine::test {

inline constexpr std::int64_t kClasses = 4;
inline constexpr std::int64_t kSide = 8;

// No batch normalisation: the loss of a sample does not depend on its neighbours.
class PlainModel final : public models::Model {
 public:
  explicit PlainModel(std::uint64_t seed = 1, std::int64_t classes = kClasses)
      : models::Model(make_generator(seed)),
        conv_(models::Scope(store()) / "conv", 3, 4, 3, {.padding = 1}),
        head_(models::Scope(store()) / "head", 4 * kSide * kSide, classes) {}

  at::Tensor forward(const at::Tensor& inputs) override {
    return head_(at::relu(conv_(inputs)).flatten(1));
  }

 private:
  models::Conv2d conv_;
  models::Linear head_;
};

// Everything a resumed run can get wrong: running statistics, dropout and several kinds of layer.
class NoisyModel final : public models::Model {
 public:
  explicit NoisyModel(std::uint64_t seed = 1, std::int64_t classes = kClasses)
      : models::Model(make_generator(seed)),
        conv_(models::Scope(store()) / "conv", 3, 4, 3, {.padding = 1, .bias = false}),
        norm_(models::Scope(store()) / "norm", 4),
        head_(models::Scope(store()) / "head", 4 * kSide * kSide, classes) {}

  at::Tensor forward(const at::Tensor& inputs) override {
    const at::Tensor features = at::relu(norm_(conv_(inputs))).flatten(1);
    return head_(models::dropout(store(), features, 0.3));
  }

 private:
  models::Conv2d conv_;
  models::BatchNorm2d norm_;
  models::Linear head_;
};

// Images of one brightness for each class, under noise: learnable in a few steps.
inline data::ArrayDataset small_images(std::int64_t count, bool crop_flip = false,
                                       std::uint64_t seed = 7) {
  data::ImageArray images;
  images.shape = {3, kSide, kSide};
  RandomStream random(seed, "small-images", {});
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t label = i % kClasses;
    images.labels.push_back(static_cast<std::uint8_t>(label));
    for (std::int64_t pixel = 0; pixel < images.shape.numel(); ++pixel) {
      images.pixels.push_back(static_cast<std::uint8_t>(50 * label + (random() & 0x3f)));
    }
  }
  return data::ArrayDataset(std::move(images), {.class_names = {"a", "b", "c", "d"},
                                                .normalization = data::Normalization::half(3),
                                                .crop_flip = crop_flip});
}

// Images `first` to `first + count` of a data set as one batch.
inline BatchTensors batch_of(const data::Dataset& data, std::int64_t first, std::int64_t count) {
  const data::SampleShape shape = data.shape();
  BatchTensors batch{at::empty({count, shape.channels, shape.height, shape.width}),
                     at::empty({count}, at::kLong)};
  for (std::int64_t i = 0; i < count; ++i) {
    data.read(first + i, 0,
              {batch.inputs.data_ptr<float>() + i * shape.numel(),
               static_cast<std::size_t>(shape.numel())});
    batch.labels.data_ptr<std::int64_t>()[i] = data.label(first + i);
  }
  return batch;
}

// Remembers what it is told, for tests of what a person would see.
class RememberedProgress final : public Progress {
 public:
  void begin(const ProgressPlan&, Step) override {}
  void step(Step done) override {
    if (on_step) on_step(done);
  }
  void recorded(const metrics::StepRecord&) override {}
  void evaluated(const metrics::EvaluationRecord&) override {}
  void note(const std::string& line) override { notes.push_back(line); }
  void end() override { ended = true; }

  std::function<void(Step)> on_step;
  std::vector<std::string> notes;
  bool ended = false;
};

class ConstantRate final : public schedules::LearningRate {
 public:
  explicit ConstantRate(double lr) : lr_(lr) {}
  double at(double) const override { return lr_; }

 private:
  double lr_;
};

inline methods::ReplicaOptions replica_with(const std::string& optimizer,
                                            bool channels_last = false) {
  methods::ReplicaOptions options;
  options.optimizer = optimizer;
  options.channels_last = channels_last;
  options.weight_decay = 0.01;
  return options;
}

struct SmallTrainingOptions {
  methods::ReplicaOptions replica = {};
  double lr = 0.05;
  std::int64_t train_size = 52;  // an epoch of 7 steps, the last of them short
  std::int64_t batch = 8;
  bool crop_flip = false;
};

// One process's worth of training: everything is built anew, as after a restart.
class SmallTraining {
 public:
  explicit SmallTraining(SmallTrainingOptions options = {})
      : model(std::make_unique<NoisyModel>()),
        replica(*model, options.replica),
        method(methods::methods().make("local", methods::MethodOptions{})),
        schedule(options.lr),
        train(small_images(options.train_size, options.crop_flip)),
        test_set(small_images(30, false, 8)),
        order({.samples = options.train_size, .batch = options.batch, .seed = 3}) {
    plan.total_steps = 40;
    plan.record_every_steps = 6;
    plan.checkpoint_every_steps = 10;
    plan.evaluation.batch = 16;
  }

  // The plan may be changed before the first call.
  Trainer trainer(storage::CheckpointStore* store = nullptr) {
    return Trainer({.model = *model,
                    .replica = replica,
                    .method = *method,
                    .schedule = schedule,
                    .train = train,
                    .test = &test_set,
                    .order = order,
                    .outlets = {&metrics, &progress, store}},
                   plan);
  }

  // From the beginning, or from the latest checkpoint in `store`.
  TrainingOutcome run(storage::CheckpointStore* store = nullptr, bool resume = false) {
    Trainer made = trainer(store);
    if (resume) made.resume(*store->load_latest([](const std::string&) {}));
    return made.run(stop);
  }

  std::unique_ptr<models::Model> model;
  methods::Replica replica;
  std::unique_ptr<methods::UpdateMethod> method;
  ConstantRate schedule;
  data::ArrayDataset train;
  data::ArrayDataset test_set;
  data::SampleOrder order;
  metrics::MemorySink metrics;
  RememberedProgress progress;
  TrainerOptions plan;
  std::atomic<bool> stop = false;
};

}  // namespace cohort::engine::test
