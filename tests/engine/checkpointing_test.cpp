#include "engine/checkpointing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "engine/small_training.h"

namespace cohort::engine::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Parameters by name, whatever their layout.
std::map<std::string, at::Tensor> weights_of(const models::Model& model) {
  std::map<std::string, at::Tensor> weights;
  for (const models::Parameter& parameter : model.store().parameters()) {
    weights[parameter.name] = parameter.value.detach().clone();
  }
  for (const models::Buffer& buffer : model.store().buffers())
    weights[buffer.name] = buffer.value.clone();
  return weights;
}

void expect_equal_weights(const models::Model& a, const models::Model& b) {
  const auto expected = weights_of(b);
  for (const auto& [name, value] : weights_of(a)) {
    EXPECT_TRUE(value.equal(expected.at(name))) << name;
  }
}

void save(storage::CheckpointStore& store, SmallTraining& training, Step step) {
  training.method->materialize(training.replica);
  const Snapshot snapshot(training.replica, *training.method, step, {{"note", "own"}});
  store.save(snapshot.contents(), false);
}

storage::LoadedCheckpoint latest(const storage::CheckpointStore& store) {
  return std::move(*store.load_latest([](const std::string&) {}));
}

TEST(Checkpointing, CarriesEverythingBetweenMemoryLayouts) {
  for (const bool from_channels_last : {false, true}) {
    storage::test::TemporaryFolder folder;
    storage::CheckpointStore store(folder.path(), 1);
    SmallTraining source({.replica = replica_with("sgd", from_channels_last)});
    source.plan.total_steps = 5;
    source.run();
    save(store, source, 5);

    SmallTraining target({.replica = replica_with("sgd", !from_channels_last)});
    const storage::LoadedCheckpoint checkpoint = latest(store);
    restore(checkpoint, target.replica, *target.method);
    EXPECT_EQ(checkpoint.step, 5);
    EXPECT_EQ(checkpoint.extra.at("engine").at("note"), "own");
    expect_equal_weights(*target.model, *source.model);
    EXPECT_EQ(target.replica.updates(), 5);

    // The momentum is in place too: the next step is the same but for rounding.
    const BatchTensors batch = batch_of(source.train, 0, 8);
    for (SmallTraining* training : {&source, &target}) {
      TrainingStep step(*training->model, training->replica, *training->method, {});
      ClassificationSums sums;
      step.run(batch, batch.labels.size(0), {5, 0.05}, sums);
    }
    const auto expected = weights_of(*source.model);
    for (const auto& [name, value] : weights_of(*target.model)) {
      const double difference = (value - expected.at(name)).abs().max().item<double>();
      EXPECT_LT(difference, 1e-5) << name;
    }
  }
}

TEST(Checkpointing, SavedAgainIsTheSameFileByteForByte) {
  storage::test::TemporaryFolder folder;
  storage::CheckpointStore first(folder / "first", 1);
  storage::CheckpointStore second(folder / "second", 1);
  SmallTraining source({.replica = replica_with("adam", true)});
  source.plan.total_steps = 5;
  source.run();
  save(first, source, 5);
  SmallTraining target({.replica = replica_with("adam", false)});
  restore(latest(first), target.replica, *target.method);
  save(second, target, 5);
  EXPECT_TRUE(
      storage::test::same_tensors(latest(first).model.tensors(), latest(second).model.tensors()));
  EXPECT_TRUE(
      storage::test::same_tensors(latest(first).state.tensors(), latest(second).state.tensors()));
}

TEST(Checkpointing, NamesTheTensorThatDoesNotFit) {
  storage::test::TemporaryFolder folder;
  storage::CheckpointStore store(folder.path(), 1);
  SmallTraining source;
  save(store, source, 0);
  const auto method = methods::methods().make("local", methods::MethodOptions{});

  NoisyModel more_classes(1, kClasses + 2);
  methods::Replica wide(more_classes, {});
  EXPECT_THAT(storage::test::file_error([&] { restore(latest(store), wide, *method); }),
              AllOf(HasSubstr("head.weight"), HasSubstr("[4, 256]"), HasSubstr("[6, 256]"),
                    HasSubstr("model.safetensors")));

  PlainModel another;
  methods::Replica other(another, {});
  EXPECT_THAT(storage::test::file_error([&] { restore(latest(store), other, *method); }),
              HasSubstr("conv.bias"));
}

TEST(Checkpointing, RefusesTensorsThatTheModelHasNot) {
  storage::test::TemporaryFolder folder;
  const NoisyModel unused;
  NoisyModel model;
  std::vector<float> numbers(3);
  std::vector<storage::TensorView> views;
  for (const models::Parameter& parameter : model.store().parameters()) {
    views.push_back(
        {parameter.name,
         storage::DType::kF32,
         parameter.value.sizes().vec(),
         {static_cast<const std::byte*>(parameter.value.data_ptr()), parameter.value.nbytes()}});
  }
  for (const models::Buffer& buffer : model.store().buffers()) {
    views.push_back(
        {buffer.name,
         buffer.value.scalar_type() == at::kLong ? storage::DType::kI64 : storage::DType::kF32,
         buffer.value.sizes().vec(),
         {static_cast<const std::byte*>(buffer.value.data_ptr()), buffer.value.nbytes()}});
  }
  storage::save_safetensors(folder / "exact", views);
  NoisyModel target(9);
  restore_model(storage::SafetensorsFile::open(folder / "exact"), "exact", target);
  expect_equal_weights(target, model);

  views.push_back({"extra.bias", storage::DType::kF32, {3}, std::as_bytes(std::span(numbers))});
  storage::save_safetensors(folder / "more", views);
  EXPECT_THAT(storage::test::file_error([&] {
                restore_model(storage::SafetensorsFile::open(folder / "more"), "more", target);
              }),
              AllOf(HasSubstr("extra.bias"), HasSubstr("more")));
}

// The model's tensors in a file, as these types.
void save_as(at::ScalarType floats, at::ScalarType counts, models::Model& model,
             const std::filesystem::path& path) {
  std::vector<at::Tensor> kept;
  std::vector<storage::TensorView> views;
  const auto type_name = [](at::ScalarType type) {
    return type == at::kFloat      ? storage::DType::kF32
           : type == at::kHalf     ? storage::DType::kF16
           : type == at::kBFloat16 ? storage::DType::kBF16
           : type == at::kDouble   ? storage::DType::kF64
           : type == at::kInt      ? storage::DType::kI32
                                   : storage::DType::kI64;
  };
  for (const auto& [name, value] : weights_of(model)) {
    kept.push_back(value.to(value.is_floating_point() ? floats : counts).contiguous());
    views.push_back(
        {name,
         type_name(kept.back().scalar_type()),
         kept.back().sizes().vec(),
         {static_cast<const std::byte*>(kept.back().data_ptr()), kept.back().nbytes()}});
  }
  storage::save_safetensors(path, views);
}

TEST(InitializeFrom, TakesEverythingOfAModelThatFits) {
  storage::test::TemporaryFolder folder;
  NoisyModel source(5);
  save_as(at::kFloat, at::kLong, source, folder / "m");
  NoisyModel target(6);
  EXPECT_TRUE(initialize_from(folder / "m", target).empty());
  expect_equal_weights(target, source);
}

TEST(InitializeFrom, LeavesAClassifierOfOtherClassesAndSaysSo) {
  storage::test::TemporaryFolder folder;
  NoisyModel source(5);
  save_as(at::kFloat, at::kLong, source, folder / "m");
  NoisyModel target(6, kClasses + 3);
  const auto before = weights_of(target);
  const std::vector<std::string> lines = initialize_from(folder / "m", target);
  EXPECT_THAT(lines,
              testing::UnorderedElementsAre(HasSubstr("head.weight"), HasSubstr("head.bias")));
  const auto after = weights_of(target);
  EXPECT_TRUE(after.at("head.weight").equal(before.at("head.weight")));
  EXPECT_TRUE(after.at("conv.weight").equal(weights_of(source).at("conv.weight")));
}

TEST(InitializeFrom, ReportsWhatIsMissingAndWhatIsTooMuch) {
  storage::test::TemporaryFolder folder;
  PlainModel source;
  save_as(at::kFloat, at::kLong, source, folder / "m");
  NoisyModel target;
  const std::vector<std::string> lines = initialize_from(folder / "m", target);
  EXPECT_THAT(lines, testing::Contains(HasSubstr("norm.weight")));
  EXPECT_THAT(lines, testing::Contains(HasSubstr("conv.bias")));
}

TEST(InitializeFrom, ConvertsOtherFloatingPointTypes) {
  storage::test::TemporaryFolder folder;
  NoisyModel source(5);
  for (const auto& [floats, counts] :
       {std::pair(at::kHalf, at::kInt), std::pair(at::kBFloat16, at::kBFloat16),
        std::pair(at::kDouble, at::kLong), std::pair(at::kHalf, at::kHalf)}) {
    save_as(floats, counts, source, folder / "m");
    NoisyModel target(6);
    EXPECT_TRUE(initialize_from(folder / "m", target).empty()) << floats;
    const auto expected = weights_of(source);
    for (const auto& [name, value] : weights_of(target)) {
      EXPECT_TRUE(value.equal(expected.at(name).to(floats).to(value.scalar_type()))) << name;
    }
  }
}

TEST(InitializeFrom, RefusesAFileOfWhichLittleFitsAndSaysWhatDidNot) {
  storage::test::TemporaryFolder folder;
  NoisyModel model(5);
  save_as(at::kInt, at::kInt, model, folder / "m");  // as if quantised
  EXPECT_THAT(storage::test::file_error([&] { initialize_from(folder / "m", model); }),
              AllOf(HasSubstr("has only 0 of the"), HasSubstr("conv.weight is I32["),
                    HasSubstr("instead of F32[")));
}

TEST(InitializeFrom, CountsNumbersAndNotOnlyTensors) {
  storage::test::TemporaryFolder folder;
  NoisyModel model(5);
  std::vector<storage::TensorView> views;
  const std::vector<float> other(4 * 3 * 5 * 5);
  for (const auto& [name, value] : weights_of(model)) {
    const bool conv = name == "conv.weight";
    const auto* data = conv ? reinterpret_cast<const std::byte*>(other.data())
                            : static_cast<const std::byte*>(value.data_ptr());
    views.push_back({name,
                     value.is_floating_point() ? storage::DType::kF32 : storage::DType::kI64,
                     conv ? std::vector<std::int64_t>{4, 3, 5, 5} : value.sizes().vec(),
                     {data, conv ? other.size() * sizeof(float) : value.nbytes()}});
  }
  storage::save_safetensors(folder / "m", views);
  EXPECT_THAT(storage::test::file_error([&] { initialize_from(folder / "m", model); }),
              AllOf(HasSubstr("4 of the 5 parameters, and 8 of 116 numbers"),
                    HasSubstr("conv.weight is F32[4, 3, 5, 5]")));
}

TEST(InitializeFrom, RefusesAFileOfWhichNothingFits) {
  storage::test::TemporaryFolder folder;
  const std::vector<float> values(4);
  const std::vector<storage::TensorView> foreign = {
      {"something.else", storage::DType::kF32, {4}, std::as_bytes(std::span(values))}};
  storage::save_safetensors(folder / "m", foreign);
  PlainModel model;
  EXPECT_THAT(storage::test::file_error([&] { initialize_from(folder / "m", model); }),
              HasSubstr("another one"));
  EXPECT_THAT(storage::test::file_error([&] { initialize_from(folder / "absent", model); }),
              HasSubstr("absent"));
}

}  // namespace
}  // namespace cohort::engine::test
