#include "storage/file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "core/failpoint.h"
#include "storage_fixture.h"

namespace cohort::storage {
namespace {

using test::file_error;
using test::TemporaryFolder;
using testing::HasSubstr;

constexpr std::uint64_t kNoLimit = 1 << 30;

TEST(File, IsReadBackAsWritten) {
  const TemporaryFolder folder;
  const std::string text("a\0b\n", 4);
  write_file_atomically(folder / "x", text);
  EXPECT_EQ(read_text_file(folder / "x", kNoLimit), text);
  write_file_atomically(folder / "x", "");
  EXPECT_EQ(read_text_file(folder / "x", 0), "");
  EXPECT_EQ(test::count_hidden(folder.path()), 0);
}

TEST(File, MessagesSayWhatHappenedToWhichFile) {
  const TemporaryFolder folder;
  EXPECT_THAT(file_error([&] { read_file(folder / "none", kNoLimit); }),
              AllOf(HasSubstr("No such file or directory while opening"),
                    HasSubstr((folder / "none").string())));
  EXPECT_THAT(file_error([&] { read_file(folder.path(), kNoLimit); }),
              HasSubstr("is not a regular file"));
  write_file_atomically(folder / "x", "12345");
  EXPECT_THAT(file_error([&] { read_file(folder / "x", 4); }),
              HasSubstr("too long: 5 bytes, at most 4 expected"));
  EXPECT_THAT(file_error([&] { write_file_atomically(folder / "x" / "y", "1"); }),
              HasSubstr("Not a directory while creating"));
}

TEST(File, DoesNotWaitForAFifo) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(file_error([&] { read_file(folder / "pipe", kNoLimit); }),
              HasSubstr("is not a regular file"));
}

TEST(File, IsUntouchedByAWriterThatIsNotCommitted) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "x", "old");
  {
    AtomicFile file(folder / "x");
    file.writer().write("new");
    EXPECT_EQ(file.writer().size(), 3U);
  }
  EXPECT_EQ(read_text_file(folder / "x", kNoLimit), "old");
  EXPECT_EQ(test::count_hidden(folder.path()), 0);
}

TEST(File, HoldsOldOrNewContentAfterAFailureAtAnyStep) {
#ifndef COHORT_FAILPOINTS
  GTEST_SKIP() << "built without failpoints";
#endif
  const TemporaryFolder folder;
  for (const std::string name : {"open", "write", "sync", "close", "rename", "sync_folder"}) {
    write_file_atomically(folder / "x", "old");
    set_failpoints("file." + name + "=error");
    EXPECT_THAT(file_error([&] { write_file_atomically(folder / "x", "new"); }),
                HasSubstr("file." + name));
    set_failpoints("");
    EXPECT_EQ(read_text_file(folder / "x", kNoLimit), name == "sync_folder" ? "new" : "old");
    EXPECT_EQ(test::count_hidden(folder.path()), 0) << name;
  }
}

}  // namespace
}  // namespace cohort::storage
