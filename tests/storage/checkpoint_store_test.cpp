#include "storage/checkpoint_store.h"

#include <gmock/gmock.h>

#include <limits>

#include "storage/folder.h"
#include "storage_fixture.h"

namespace cohort::storage {
namespace {

namespace fs = std::filesystem;
using test::file_error;
using test::is_known;
using test::KnownContents;
using test::TemporaryFolder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CheckpointStoreTest : public testing::Test {
 protected:
  void save(CheckpointStore& store, Step step, bool best = false, std::uint64_t variant = 0) {
    store.save(KnownContents(step, variant).contents, best);
  }

  // The step that load_latest gives, after checking its content; warnings_ are those of this call.
  Step latest(const CheckpointStore& store) {
    warnings_.clear();
    const auto loaded =
        store.load_latest([&](const std::string& warning) { warnings_.push_back(warning); });
    if (!loaded) return -1;
    EXPECT_TRUE(is_known(*loaded));
    return loaded->step;
  }

  static std::vector<Step> steps(const CheckpointStore& store) {
    std::vector<Step> all;
    for (const StoredCheckpoint& each : store.list()) all.push_back(each.step);
    return all;
  }

  TemporaryFolder parent_;
  fs::path folder_ = parent_ / "checkpoints";
  std::vector<std::string> warnings_;
};

TEST_F(CheckpointStoreTest, IsEmptyAndTouchesNothingBeforeTheFirstSave) {
  const CheckpointStore store(folder_, 3);
  EXPECT_EQ(latest(store), -1);
  EXPECT_FALSE(store.load_best().has_value());
  EXPECT_THAT(steps(store), IsEmpty());
  EXPECT_FALSE(fs::exists(folder_));
  EXPECT_THROW(CheckpointStore(folder_, 0), ConfigError);
}

TEST_F(CheckpointStoreTest, GivesBackExactlyWhatWasSaved) {
  CheckpointStore store(folder_, 3);
  save(store, 1234, true);
  EXPECT_EQ(latest(store), 1234);
  EXPECT_THAT(warnings_, IsEmpty());
  EXPECT_TRUE(is_known(store.load_best().value()));
  EXPECT_TRUE(is_known(load_checkpoint(folder_ / "step-000001234")));
  EXPECT_TRUE(read_text_file(folder_ / "latest", 100).starts_with("step-000001234 "));
  EXPECT_EQ(test::count_hidden(folder_), 0);
}

TEST_F(CheckpointStoreTest, KeepsTheNewestAndTheBest) {
  CheckpointStore store(folder_, 2);
  for (const Step step : {0, 10, 20, 30, 40}) save(store, step, step == 10);
  EXPECT_THAT(steps(store), ElementsAre(40, 30, 10));
  EXPECT_EQ(store.load_best()->step, 10);
  save(store, 50, true);
  EXPECT_THAT(steps(store), ElementsAre(50, 40));
  EXPECT_EQ(store.load_best()->step, 50);
}

TEST_F(CheckpointStoreTest, RemovesNothingWhileTheBestCannotBeTold) {
  CheckpointStore store(folder_, 1);
  save(store, 10, true);
  write_file_atomically(folder_ / "best", "step-000000");
  save(store, 20);
  save(store, 30);
  EXPECT_THAT(steps(store), ElementsAre(30, 20, 10));
  EXPECT_THROW(store.load_best(), FileError);
}

TEST_F(CheckpointStoreTest, ReplacesACheckpointOfTheSameStep) {
  CheckpointStore store(folder_, 2);
  save(store, 10);
  save(store, 20, false, 1);
  save(store, 20, false, 2);
  EXPECT_EQ(latest(store), 20);
  EXPECT_EQ(load_checkpoint(folder_ / "step-000000020").extra.at("variant"), 2);
  EXPECT_THAT(steps(store), ElementsAre(20, 10));
  EXPECT_EQ(test::count_hidden(folder_), 0);
}

TEST_F(CheckpointStoreTest, GoingBackLeavesLaterStepsAloneButNotLatest) {
  CheckpointStore store(folder_, 2);
  for (const Step step : {10, 20, 30}) save(store, step);
  save(store, 15);
  EXPECT_EQ(latest(store), 15);
  EXPECT_THAT(steps(store), ElementsAre(30, 20, 15));
  fs::remove(folder_ / "step-000000015" / "state.safetensors");
  EXPECT_EQ(latest(store), 30);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("step 15")));
}

TEST_F(CheckpointStoreTest, FallsBackPastDamagedOnesAndSaysSo) {
  CheckpointStore store(folder_, 3);
  for (const Step step : {10, 20, 30}) save(store, step);
  fs::resize_file(folder_ / "step-000000030" / "model.safetensors", 100);
  fs::remove(folder_ / "step-000000020" / "manifest.json");
  EXPECT_EQ(latest(store), 10);
  EXPECT_THAT(warnings_, ElementsAre(AllOf(HasSubstr("step 30"), HasSubstr("model.safetensors")),
                                     AllOf(HasSubstr("step 20"), HasSubstr("manifest.json"))));
}

TEST_F(CheckpointStoreTest, ListsEveryReasonWhenNoneIsSound) {
  CheckpointStore store(folder_, 3);
  for (const Step step : {10, 20}) save(store, step);
  for (const Step step : {10, 20}) {
    fs::remove(folder_ / ("step-0000000" + std::to_string(step)) / "state.safetensors");
  }
  EXPECT_THAT(file_error([&] { latest(store); }),
              AllOf(HasSubstr("no usable checkpoint"), HasSubstr("step 10"), HasSubstr("step 20"),
                    HasSubstr("No such file")));
}

TEST_F(CheckpointStoreTest, DoesWithoutThePointer) {
  CheckpointStore store(folder_, 3);
  for (const Step step : {10, 20}) save(store, step);
  fs::remove(folder_ / "latest");
  EXPECT_EQ(latest(store), 20);
  EXPECT_THAT(warnings_, IsEmpty());
  write_file_atomically(folder_ / "latest", "step-000000010\n");
  EXPECT_EQ(latest(store), 20);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("latest is damaged")));
}

TEST_F(CheckpointStoreTest, NoticesAPointerToNothing) {
  CheckpointStore store(folder_, 3);
  for (const Step step : {10, 20}) save(store, step, step == 20);
  remove_tree(folder_ / "step-000000020");
  EXPECT_EQ(latest(store), 10);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("names step-000000020, which is not there")));
  EXPECT_THAT(file_error([&] { store.load_best(); }), HasSubstr("which is not there"));
}

TEST_F(CheckpointStoreTest, NoticesACheckpointUnderAnothersName) {
  CheckpointStore store(folder_, 3);
  for (const Step step : {10, 20}) save(store, step);
  fs::rename(folder_ / "step-000000020", folder_ / "step-000000030");
  EXPECT_EQ(latest(store), 10);
  fs::remove(folder_ / "latest");
  EXPECT_EQ(latest(store), 10);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("of step 20, expected one of step 30")));
}

TEST_F(CheckpointStoreTest, NoticesFilesOfAnotherCheckpoint) {
  CheckpointStore store(folder_, 3);
  for (const Step step : {10, 20}) save(store, step);
  fs::copy_file(folder_ / "step-000000010" / "state.safetensors",
                folder_ / "step-000000020" / "state.safetensors",
                fs::copy_options::overwrite_existing);
  EXPECT_EQ(latest(store), 10);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("tensor 'mask' is damaged")));
}

TEST_F(CheckpointStoreTest, NoticesMetadataNobodyVouchesFor) {
  CheckpointStore store(folder_, 3);
  const KnownContents known(10);
  CheckpointContents contents = known.contents;
  store.save(contents, false);
  save_safetensors(folder_ / "step-000000010" / "model.safetensors", contents.model, {{"a", "b"}});
  EXPECT_THROW(latest(store), FileError);
}

TEST_F(CheckpointStoreTest, FindsAndRestoresWhatAnInterruptedReplacementSetAside) {
  CheckpointStore store(folder_, 3);
  for (const Step step : {10, 20}) save(store, step);
  fs::rename(folder_ / "step-000000020", set_aside_name(folder_ / "step-000000020"));
  EXPECT_EQ(latest(store), 20);
  EXPECT_THAT(warnings_, IsEmpty());
  save(store, 30);
  EXPECT_THAT(steps(store), ElementsAre(30, 20, 10));
  EXPECT_TRUE(fs::exists(folder_ / "step-000000020"));
  EXPECT_EQ(test::count_hidden(folder_), 0);
}

TEST_F(CheckpointStoreTest, LoadingLeavesAnUnfinishedSaveAloneAndTheNextSaveRemovesIt) {
  CheckpointStore store(folder_, 3);
  save(store, 10);
  fs::create_directory(folder_ / ".tmp-step-000000020");
  EXPECT_EQ(latest(store), 10);
  EXPECT_EQ(test::count_hidden(folder_), 1);
  save(store, 20);
  EXPECT_EQ(test::count_hidden(folder_), 0);
}

TEST_F(CheckpointStoreTest, RefusesStateThatJsonCannotHold) {
  CheckpointStore store(folder_, 3);
  save(store, 10);
  const KnownContents known(20);
  CheckpointContents contents = known.contents;
  contents.extra["best_loss"] = std::numeric_limits<double>::infinity();
  EXPECT_THROW(store.save(contents, false), RunError);
  EXPECT_THAT(steps(store), ElementsAre(10));
  EXPECT_EQ(test::count_hidden(folder_), 0);
}

TEST_F(CheckpointStoreTest, SaysWhyItCannotSave) {
  write_file_atomically(parent_ / "file", "in the way");
  CheckpointStore store(parent_ / "file" / "checkpoints", 3);
  EXPECT_THAT(file_error([&] { save(store, 10); }),
              AllOf(HasSubstr("Not a directory while creating the folder"),
                    HasSubstr("the checkpoint of step 10 failed, earlier ones are kept")));
}

TEST_F(CheckpointStoreTest, TakesStepsWithMoreDigitsThanTheNameHasPlacesFor) {
  CheckpointStore store(folder_, 3);
  for (const Step step : {Step{999'999'999}, Step{1'000'000'000}, Step{1} << 40}) {
    save(store, step);
  }
  EXPECT_EQ(latest(store), Step{1} << 40);
  EXPECT_THAT(steps(store), ElementsAre(Step{1} << 40, 1'000'000'000, 999'999'999));
}

}  // namespace
}  // namespace cohort::storage
