// Bits flip and files lose their ends: a checkpoint then loads as it was saved or not at all.
#include <gmock/gmock.h>

#include "storage/checkpoint_store.h"
#include "storage_fixture.h"

namespace cohort::storage {
namespace {

namespace fs = std::filesystem;
using test::is_known;
using test::KnownContents;
using test::TemporaryFolder;

class CheckpointDamage : public testing::Test {
 protected:
  void SetUp() override {
    store_.save(KnownContents(10).contents, true);
    store_.save(KnownContents(20).contents, false);
  }

  // Loads after damage to step 20: gives 20 or 10 if that is what came back, exactly and with
  // a warning in the case of 10, and fails the test otherwise.
  Step load(const std::string& what) {
    std::string warning;
    const auto loaded = store_.load_latest([&](const std::string& text) { warning += text; });
    if (!loaded || !is_known(*loaded)) {
      ADD_FAILURE() << "wrong content after " << what;
      return -1;
    }
    if (loaded->step == 10) {
      EXPECT_NE(warning.find("step 20 cannot be used"), std::string::npos) << what << warning;
    }
    return loaded->step;
  }

  TemporaryFolder parent_;
  CheckpointStore store_{parent_ / "checkpoints", 3};
  fs::path newest_ = parent_ / "checkpoints" / "step-000000020";
  const std::vector<std::string> files_ = {"model.safetensors", "state.safetensors",
                                           "manifest.json"};
};

TEST_F(CheckpointDamage, FlippedBitsAreNeverLoaded) {
  RandomStream random(1, "bit flips");
  const int flips = test::scaled(200);
  int refused = 0;
  for (int i = 0; i < flips; ++i) {
    const fs::path path = newest_ / files_[static_cast<std::size_t>(i) % files_.size()];
    const std::string sound = read_text_file(path, 1 << 20);
    std::string damaged = sound;
    const std::uint64_t bit = random.below(sound.size() * 8);
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    write_file_atomically(path, damaged);
    refused += load("bit " + std::to_string(bit) + " of " + path.string()) == 10 ? 1 : 0;
    write_file_atomically(path, sound);
  }
  // Nothing in these files is without meaning, so no flip is harmless.
  EXPECT_EQ(refused, flips);
  EXPECT_EQ(load("repair"), 20);
}

TEST_F(CheckpointDamage, TruncatedFilesAreNeverLoaded) {
  const std::uint64_t places = 100;
  for (const std::string& file : files_) {
    const std::string sound = read_text_file(newest_ / file, 1 << 20);
    for (std::uint64_t i = 0; i < places; ++i) {
      const std::size_t length = sound.size() * i / places;
      write_file_atomically(newest_ / file, sound.substr(0, length));
      EXPECT_EQ(load(file + " cut to " + std::to_string(length)), 10);
    }
    write_file_atomically(newest_ / file, sound);
  }
}

TEST_F(CheckpointDamage, FilesMadeLongerAreNeverLoaded) {
  for (const std::string& file : files_) {
    const std::string sound = read_text_file(newest_ / file, 1 << 20);
    for (const std::string& more : {std::string(1, '\0'), std::string(" "), sound}) {
      write_file_atomically(newest_ / file, sound + more);
      EXPECT_EQ(load(file + " made longer"), 10);
    }
    write_file_atomically(newest_ / file, sound);
  }
}

TEST_F(CheckpointDamage, StretchesOfZerosAreNeverLoaded) {
  RandomStream random(1, "zeros");
  for (int i = 0; i < test::scaled(60); ++i) {
    const fs::path path = newest_ / files_[static_cast<std::size_t>(i) % files_.size()];
    const std::string sound = read_text_file(path, 1 << 20);
    std::string damaged = sound;
    const std::size_t begin = random.below(sound.size());
    const std::size_t length = 1 + random.below(std::min<std::size_t>(512, sound.size() - begin));
    damaged.replace(begin, length, length, '\0');
    if (damaged == sound) continue;
    write_file_atomically(path, damaged);
    EXPECT_EQ(load("zeros in " + path.string()), 10);
    write_file_atomically(path, sound);
  }
}

TEST_F(CheckpointDamage, EveryFlippedBitOfThePointerIsNoticedAndDoesNoHarm) {
  const fs::path path = parent_ / "checkpoints" / "latest";
  const std::string sound = read_text_file(path, 1000);
  for (std::size_t bit = 0; bit < sound.size() * 8; ++bit) {
    std::string damaged = sound;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    write_file_atomically(path, damaged);
    int warnings = 0;
    const auto loaded = store_.load_latest([&](const std::string&) { ++warnings; });
    EXPECT_EQ(loaded.value().step, 20);
    EXPECT_EQ(warnings, 1) << bit;
  }
}

}  // namespace
}  // namespace cohort::storage
