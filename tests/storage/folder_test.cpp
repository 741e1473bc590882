#include "storage/folder.h"

#include <csignal>

#include "core/failpoint.h"
#include "storage_fixture.h"

namespace cohort::storage {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;

void make_folder(const fs::path& path, const std::string& content) {
  fs::create_directories(path);
  write_file_atomically(path / "content", content);
}

std::string content_of(const fs::path& path) { return read_text_file(path / "content", 100); }

TEST(Folder, TakesTheNameOfAnotherOrAFreeOne) {
  for (const bool exists : {false, true}) {
    const TemporaryFolder parent;
    make_folder(parent / "new", "new");
    if (exists) make_folder(parent / "place", "old");
    replace_folder(parent / "new", parent / "place");
    EXPECT_EQ(content_of(parent / "place"), "new");
    EXPECT_FALSE(fs::exists(parent / "new"));
  }
}

TEST(Folder, IsReplacedInTwoStepsWhereExchangeIsImpossible) {
  const TemporaryFolder parent;
  make_folder(parent / "new", "new");
  make_folder(parent / "place", "old");
  replace_folder_in_two_steps(parent / "new", parent / "place");
  EXPECT_EQ(content_of(parent / "place"), "new");
  EXPECT_EQ(test::count_hidden(parent.path()), 0);
}

TEST(Folder, IsRestoredAfterAReplacementThatFailedOrWasKilled) {
#ifndef COHORT_FAILPOINTS
  GTEST_SKIP() << "built without failpoints";
#endif
  const TemporaryFolder parent;
  make_folder(parent / "new", "new");
  make_folder(parent / "place", "old");
  set_failpoints("file.rename=error@2");
  EXPECT_THROW(replace_folder_in_two_steps(parent / "new", parent / "place"), FileError);
  set_failpoints("");
  EXPECT_EQ(content_of(parent / "place"), "old");

  const int status = test::in_child([&] {
    set_failpoints("file.rename=crash@2");
    replace_folder_in_two_steps(parent / "new", parent / "place");
  });
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_FALSE(fs::exists(parent / "place"));
  EXPECT_EQ(content_of(set_aside_name(parent / "place")), "old");
  restore_set_aside(parent.path());
  EXPECT_EQ(content_of(parent / "place"), "old");
}

TEST(Folder, SetAsideIsRemovedWhenItsReplacementArrived) {
  const TemporaryFolder parent;
  make_folder(parent / "place", "new");
  make_folder(set_aside_name(parent / "place"), "old");
  restore_set_aside(parent.path());
  EXPECT_EQ(content_of(parent / "place"), "new");
  EXPECT_EQ(test::count_hidden(parent.path()), 0);
}

TEST(Folder, LeftoversGoAndNothingElse) {
  const TemporaryFolder parent;
  make_folder(parent / ".tmp-step-1", "half");
  make_folder(parent / "step-1", "whole");
  write_file_atomically(parent / ".hidden", "user's own");
  remove_leftovers(parent.path());
  EXPECT_FALSE(fs::exists(parent / ".tmp-step-1"));
  EXPECT_EQ(content_of(parent / "step-1"), "whole");
  EXPECT_TRUE(fs::exists(parent / ".hidden"));
  remove_leftovers(parent / "none");
}

TEST(Folder, IsDiscardedWhole) {
  const TemporaryFolder parent;
  make_folder(parent / "place", "old");
  discard_folder(parent / "place");
  EXPECT_TRUE(fs::is_empty(parent.path()));
  EXPECT_THROW(discard_folder(parent / "place"), FileError);
}

}  // namespace
}  // namespace cohort::storage
