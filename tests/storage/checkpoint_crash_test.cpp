// Saves that do not end well: killed, refused by the disk, or failing at each of their steps.
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <csignal>
#include <regex>
#include <set>

#include "core/failpoint.h"
#include "storage/checkpoint_store.h"
#include "storage_fixture.h"

namespace cohort::storage {
namespace {

namespace fs = std::filesystem;
using test::count_hidden;
using test::in_child;
using test::is_known;
using test::KnownContents;
using test::scaled;
using test::TemporaryFolder;

constexpr std::size_t kManyValues = 60'000;  // about a megabyte: a save takes milliseconds

LoadedCheckpoint load(const CheckpointStore& store) {
  auto loaded = store.load_latest(
      [](const std::string& warning) { ADD_FAILURE() << "warning: " << warning; });
  return std::move(loaded.value());
}

// Saves step after step, reporting each that save() returned from.
[[noreturn]] void save_until_killed(const fs::path& folder, Step step, int report) {
  CheckpointStore store(folder, 2);
  const auto tell = [&](Step done) {
    if (::write(report, &done, sizeof done) != sizeof done) ::_exit(1);
  };
  for (bool begun = false;; begun = true) {
    ++step;
    // Every third save replaces the one before it, which takes another path on disk.
    const Step named = step % 3 == 0 ? step - 1 : step;
    const KnownContents known(named, static_cast<std::uint64_t>(step), kManyValues);
    if (!begun) tell(step - 1);
    store.save(known.contents, step % 5 == 0);
    tell(named);
  }
}

TEST(CheckpointCrash, KilledAtAnyMomentTheLastFinishedSaveIsThere) {
  const TemporaryFolder parent;
  CheckpointStore store(parent / "checkpoints", 2);
  store.save(KnownContents(1, 1, kManyValues).contents, true);
  RandomStream random(1, "kills");
  Step last = 1;
  int interrupted = 0;
  const int kills = scaled(30);
  // Some must have hit a save; on a busy machine that may take more of them.
  for (int i = 0; i < kills || (interrupted == 0 && i < 10 * kills); ++i) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) save_until_killed(store.folder(), last, ends[1]);
    ::close(ends[1]);
    Step finished = last;
    ASSERT_EQ(::read(ends[0], &finished, sizeof finished), sizeof finished);  // however slow it is
    ::usleep(static_cast<useconds_t>(1000 + random.below(29'000)));  // the moment is the test
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child failed by itself";
    while (::read(ends[0], &finished, sizeof finished) == sizeof finished) {
    }
    ::close(ends[0]);
    interrupted += count_hidden(store.folder()) > 0 ? 1 : 0;

    const LoadedCheckpoint loaded = load(store);
    EXPECT_TRUE(is_known(loaded, kManyValues)) << "kill " << i;
    EXPECT_GE(loaded.step, finished) << "kill " << i;
    EXPECT_TRUE(is_known(store.load_best().value(), kManyValues)) << "kill " << i;
    last = loaded.step;
  }
  std::printf("%d kills, %d of them with a save half done\n", kills, interrupted);
  EXPECT_GT(interrupted, 0) << "the test no longer hits what it is for";
  store.save(KnownContents(last + 1, 0, kManyValues).contents, false);
  EXPECT_EQ(count_hidden(store.folder()), 0);
}

// A store with checkpoints 10 (best), 20 and 30, in which saving step 30 or 40 as the best goes
// through everything a save can do.
struct Scene {
  Scene() {
    for (const Step step : {10, 20, 30}) store.save(KnownContents(step).contents, step == 10);
  }

  void save(Step step) { store.save(KnownContents(step, 1).contents, true); }

  // Whatever happened, a known checkpoint loads, the best one too, and the next save works.
  void expect_usable(Step saved) {
    const LoadedCheckpoint loaded = load(store);
    EXPECT_TRUE(is_known(loaded));
    EXPECT_TRUE(loaded.step == 30 || loaded.step == saved) << loaded.step;
    EXPECT_TRUE(is_known(store.load_best().value()));
    store.save(KnownContents(50).contents, false);
    EXPECT_EQ(load(store).step, 50);
    EXPECT_EQ(count_hidden(store.folder()), 0);
  }

  TemporaryFolder parent;
  CheckpointStore store{parent / "checkpoints", 2};
};

// Every place in the sources of this layer, so that none can be forgotten here.
std::set<std::string> failpoints_in_sources() {
  std::set<std::string> names;
  const std::regex pattern(R"re(COHORT_FAILPOINT\("([^"]+)"\))re");
  for (const auto& entry : fs::directory_iterator(COHORT_STORAGE_SOURCES)) {
    if (entry.path().extension() != ".cpp") continue;
    const std::string text = read_text_file(entry.path(), 1 << 20);
    for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end;
         ++match) {
      if (!match->str(1).starts_with("append.")) names.insert(match->str(1));
    }
  }
  return names;
}

// How often a save of `step` reaches the failpoint; at each of these times it was killed, and
// afterwards the store was usable.
int kill_at_each_time(const std::string& name, Step step) {
  for (int time = 1;; ++time) {
    SCOPED_TRACE(name + ", time " + std::to_string(time));
    Scene scene;
    const int status = in_child([&] {
      set_failpoints(name + "=crash@" + std::to_string(time));
      scene.save(step);
    });
    if (status == 0) return time - 1;
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    scene.expect_usable(step);
  }
}

void fail_at(const std::string& name, int time, Step step) {
  SCOPED_TRACE(name + ", time " + std::to_string(time));
  Scene scene;
  set_failpoints(name + "=error@" + std::to_string(time));
  const std::string message = test::file_error([&] { scene.save(step); });
  set_failpoints("");
  if (message.empty()) {
    // Only the removal of old checkpoints may fail without failing the save.
    EXPECT_EQ(load(scene.store).extra.at("variant"), 1);
    EXPECT_EQ(load(scene.store).step, step);
  } else {
    EXPECT_THAT(message, testing::HasSubstr("earlier ones are kept"));
    EXPECT_EQ(count_hidden(scene.store.folder()), 0);
  }
  scene.expect_usable(step);
}

TEST(CheckpointCrash, EveryStepOfASaveMayBeItsLast) {
#ifndef COHORT_FAILPOINTS
  GTEST_SKIP() << "built without failpoints";
#endif
  const std::set<std::string> names = failpoints_in_sources();
  ASSERT_GE(names.size(), 10U);
  int places = 0;
  for (const std::string& name : names) {
    int reached = 0;
    for (const Step step : {30, 40}) {
      const int times = kill_at_each_time(name, step);
      for (int time = 1; time <= times; ++time) fail_at(name, time, step);
      reached += times;
    }
    EXPECT_GT(reached, 0) << name << " is never reached by a save";
    places += reached;
  }
  std::printf("%d places in two saves, each failed once and killed once\n", places);
}

// Tries to save 1 MB where only `room` bytes fit; 0 when that failed as it should.
int save_in_small_room(CheckpointStore& store) {
  const std::string message =
      test::file_error([&] { store.save(KnownContents(20, 0, kManyValues).contents, true); });
  if (message.find("while writing") == std::string::npos) return 2;
  if (message.find("earlier ones are kept") == std::string::npos) return 3;
  return count_hidden(store.folder()) == 0 ? 0 : 4;
}

TEST(CheckpointCrash, AFileThatMayNotGrowLeavesTheEarlierCheckpoint) {
  for (const rlim_t room : {0, 1, 100, 4096, 100'000, 700'000}) {
    const TemporaryFolder parent;
    CheckpointStore store(parent / "checkpoints", 1);
    store.save(KnownContents(10).contents, true);
    const int status = in_child([&] {
      ::signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{room, room};
      ::setrlimit(RLIMIT_FSIZE, &limit);
      ::_exit(save_in_small_room(store));
    });
    EXPECT_EQ(WEXITSTATUS(status), 0) << room;
    EXPECT_EQ(load(store).step, 10) << room;
    EXPECT_EQ(store.load_best().value().step, 10) << room;
    store.save(KnownContents(20).contents, false);
    EXPECT_EQ(load(store).step, 20);
  }
}

constexpr int kCannotMount = 77;

// In a mount namespace of its own, so that nothing stays mounted however the test ends.
int save_on_full_disk(const fs::path& folder) {
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=1m") != 0) {
    return kCannotMount;
  }
  CheckpointStore store(folder / "checkpoints", 1);
  store.save(KnownContents(10, 0, 10'000).contents, true);
  for (int i = 0; i < 3; ++i) {
    if (const int failure = save_in_small_room(store); failure != 0) return failure;
    const auto ignore = [](const std::string&) { ::_exit(5); };
    const auto loaded = store.load_latest(ignore);
    if (!loaded || loaded->step != 10 || !is_known(*loaded, 10'000)) return 6;
  }
  store.save(KnownContents(30, 0, 10'000).contents, true);
  return store.load_best()->step == 30 ? 0 : 7;
}

TEST(CheckpointCrash, AFullDiskLeavesTheEarlierCheckpoint) {
  const TemporaryFolder folder;
  const int status = in_child([&] { ::_exit(save_on_full_disk(folder.path())); });
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kCannotMount) GTEST_SKIP() << "may not mount a tmpfs";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace cohort::storage
