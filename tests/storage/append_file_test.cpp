#include "storage/append_file.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>

#include "storage_fixture.h"

namespace cohort::storage {
namespace {

using test::TemporaryFolder;
using testing::HasSubstr;

std::string text_of(const std::filesystem::path& path) { return read_text_file(path, 1 << 20); }

TEST(AppendFile, GathersLinesUntilFlushed) {
  const TemporaryFolder folder;
  AppendFile log(folder / "log");
  log.append_line("one");
  EXPECT_EQ(text_of(folder / "log"), "");
  EXPECT_EQ(log.size(), 4U);
  log.flush();
  EXPECT_EQ(text_of(folder / "log"), "one\n");
  log.append_line("two");
  log.sync();
  EXPECT_EQ(text_of(folder / "log"), "one\ntwo\n");
  log.append_line(std::string(100'000, 'x'));
  EXPECT_EQ(text_of(folder / "log").size(), log.size());
}

TEST(AppendFile, IsMadeAgainWithAllThatWasWritten) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "run");
  AppendFile log(folder / "run" / "log");
  const std::string longer(100'000, 'x');
  log.append_line(longer);
  log.flush();
  std::filesystem::remove_all(folder / "run");
  std::filesystem::create_directory(folder / "run");
  log.append_line("after");
  log.remake();
  log.append_line("end");
  log.flush();
  EXPECT_EQ(text_of(folder / "run" / "log"), longer + "\nafter\nend\n");
  log.truncate(longer.size() + 1);
  EXPECT_EQ(text_of(folder / "run" / "log"), longer + "\n");
}

TEST(AppendFile, ContinuesWhereACheckpointSawIt) {
  const TemporaryFolder folder;
  std::uint64_t at_checkpoint = 0;
  {
    AppendFile log(folder / "log");
    log.append_line("kept");
    at_checkpoint = log.size();
    log.append_line("after the checkpoint");
  }
  AppendFile log(folder / "log");
  log.truncate(at_checkpoint);
  log.append_line("again");
  log.flush();
  EXPECT_EQ(text_of(folder / "log"), "kept\nagain\n");
  EXPECT_EQ(log.size(), 11U);
  EXPECT_THAT(test::file_error([&] { log.truncate(12); }),
              HasSubstr("too short: 12 bytes expected, 11 found"));
}

TEST(AppendFile, HasNoTornLineAfterTheDiskWasFull) {
  const TemporaryFolder folder;
  const int status = test::in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    AppendFile log(folder / "log");
    log.append_line("first");
    log.flush();
    const rlimit small{10, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &small);
    log.append_line("too long for the disk");
    const std::string message = test::file_error([&] { log.flush(); });
    if (message.find("File too large while writing") == std::string::npos) ::_exit(2);
    const rlimit large{RLIM_INFINITY, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &large);
    log.append_line("later");
    log.sync();
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(text_of(folder / "log"), "first\nlater\n");
}

TEST(AppendFile, RefusesAFolder) {
  const TemporaryFolder folder;
  EXPECT_THROW(AppendFile(folder.path()), FileError);
}

}  // namespace
}  // namespace cohort::storage
