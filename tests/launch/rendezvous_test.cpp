#include "launch/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "private_test_folder.h"

namespace cohort {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

class RendezvousTest : public PrivateTestFolder {
 protected:
  std::string fault_of(const std::string& fallback) const {
    try {
      private_folder([](const char*) -> const char* { return nullptr; }, fallback);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }

  void write(const std::string& path, const std::string& text) const {
    std::ofstream(path, std::ios::binary) << text;
  }
};

Notice some_notice() {
  return {.memory = "/dev/shm/cohort-aB3dE6", .processes = 2, .workers = 4, .pid = 0, .start = 0};
}

TEST_F(RendezvousTest, MakesAFolderForThisUserAlone) {
  const std::string path = folder() + "/new";
  EXPECT_EQ(fault_of(path), "");
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
  EXPECT_EQ(fault_of(path), "");
}

TEST_F(RendezvousTest, RefusesAFolderThatOthersMayUse) {
  const std::string path = folder() + "/open";
  for (const mode_t mode : {0755, 0770, 0701}) {
    mkdir(path.c_str(), 0700);
    chmod(path.c_str(), mode);
    EXPECT_THAT(fault_of(path),
                AllOf(HasSubstr(path), HasSubstr("0700"), HasSubstr("XDG_RUNTIME_DIR")));
  }
}

TEST_F(RendezvousTest, RefusesALinkAndAFile) {
  const std::string link = folder() + "/link";
  std::filesystem::create_directory(folder() + "/target");
  chmod((folder() + "/target").c_str(), 0700);
  std::filesystem::create_directory_symlink(folder() + "/target", link);
  EXPECT_THAT(fault_of(link), HasSubstr("link"));
  write(folder() + "/file", "");
  EXPECT_THAT(fault_of(folder() + "/file"), HasSubstr("not a folder"));
  EXPECT_THAT(fault_of(folder() + "/missing/new"), HasSubstr("No such file"));
}

TEST_F(RendezvousTest, RefusesAFolderOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  const std::string path = folder() + "/given";
  mkdir(path.c_str(), 0700);
  ASSERT_EQ(chown(path.c_str(), 12345, 12345), 0);
  EXPECT_THAT(fault_of(path), HasSubstr("another user"));
}

TEST_F(RendezvousTest, TakesTheRuntimeFolderOnlyWhenItIsPrivate) {
  const std::string runtime = folder() + "/runtime";
  const std::string fallback = folder() + "/fallback";
  const auto variable = [&](const char* name) -> const char* {
    return std::string(name) == "XDG_RUNTIME_DIR" ? runtime.c_str() : nullptr;
  };
  EXPECT_EQ(private_folder(variable, fallback), fallback);
  mkdir(runtime.c_str(), 0700);
  EXPECT_EQ(private_folder(variable, fallback), runtime);
  chmod(runtime.c_str(), 0755);
  EXPECT_EQ(private_folder(variable, fallback), fallback);
}

TEST_F(RendezvousTest, ShowsANoticeToThoseWithTheSameKeyUntilItIsWithdrawn) {
  const Rendezvous same(folder(), "key");
  const Rendezvous other(folder(), "another key");
  EXPECT_FALSE(same.look());
  {
    Rendezvous first(folder(), "key");
    first.publish(some_notice(), deadline_in(5s));
    const auto found = same.look();
    ASSERT_TRUE(found);
    EXPECT_EQ(found->memory, some_notice().memory);
    EXPECT_EQ(found->processes, 2);
    EXPECT_EQ(found->workers, 4);
    EXPECT_EQ(found->pid, getpid());
    EXPECT_FALSE(other.look());
    struct stat status {};
    ASSERT_EQ(stat(first.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0600u);
    Rendezvous second(folder(), "key");
    EXPECT_THROW(second.publish(some_notice(), deadline_in(5s)), ConfigError);
  }
  EXPECT_FALSE(same.look());
  EXPECT_EQ(files(), 0);
}

TEST_F(RendezvousTest, ReadsNothingFromADamagedNotice) {
  std::string good;
  Rendezvous first(folder(), "key");
  first.publish(some_notice(), deadline_in(5s));
  {
    std::ifstream file(first.path());
    good.assign(std::istreambuf_iterator<char>(file), {});
  }
  ASSERT_TRUE(first.look());
  const auto with = [&](const std::string& old, const std::string& replacement) {
    std::string text = good;
    EXPECT_NE(text.find(old), std::string::npos);
    return text.replace(text.find(old), old.size(), replacement);
  };
  for (const std::string& text :
       {std::string(), good.substr(0, good.size() - 1), good + "more\n", std::string(5000, 'x'),
        with("processes 1", "processes 2"), with("/dev/shm/cohort-aB3dE6", "/etc/passwd"),
        with("aB3dE6", "../../x"), with("aB3dE6", "aB3dE67"), with("\n2\n", "\n0\n"),
        with("\n4\n", "\n-4\n"), with("\n4\n", "\n99999999999999\n"),
        with("\n" + std::to_string(getpid()) + "\n", "\n1\n")}) {
    write(first.path(), text);
    EXPECT_FALSE(first.look()) << text;
  }
  write(first.path(), good);
  EXPECT_TRUE(first.look());
  std::filesystem::rename(first.path(), folder() + "/elsewhere");
  std::filesystem::create_symlink(folder() + "/elsewhere", first.path());
  EXPECT_FALSE(first.look());
}

TEST_F(RendezvousTest, TakesStaleNoticesAndTheirMemoryAway) {
  std::string memory = "/dev/shm/cohort-XXXXXX";
  const int made = mkstemp(memory.data());
  if (made < 0) GTEST_SKIP() << "there is no /dev/shm";
  close(made);
  const pid_t child = fork();
  if (child == 0) {
    Rendezvous gone(folder(), "of one that is killed");
    Notice notice = some_notice();
    notice.memory = memory;
    gone.publish(notice, deadline_in(5s));
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  EXPECT_EQ(files(), 1);
  EXPECT_FALSE(Rendezvous(folder(), "of one that is killed").look());
  Rendezvous next(folder(), "key");
  next.publish(some_notice(), deadline_in(5s));
  EXPECT_EQ(files(), 1);
  EXPECT_FALSE(std::filesystem::exists(memory));
  EXPECT_TRUE(next.look());
}

}  // namespace
}  // namespace cohort
