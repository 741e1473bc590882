#include "launch/runtime_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "private_test_folder.h"

namespace cohort::launch {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class RuntimeFolder : public PrivateTestFolder {
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

TEST_F(RuntimeFolder, MakesAFolderForThisUserAlone) {
  const std::string path = folder() + "/new";
  EXPECT_EQ(fault_of(path), "");
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
  EXPECT_EQ(fault_of(path), "");
}

TEST_F(RuntimeFolder, RefusesAFolderThatOthersMayUse) {
  const std::string path = folder() + "/open";
  for (const mode_t mode : {0755, 0770, 0701}) {
    mkdir(path.c_str(), 0700);
    chmod(path.c_str(), mode);
    EXPECT_THAT(fault_of(path),
                AllOf(HasSubstr(path), HasSubstr("0700"), HasSubstr("XDG_RUNTIME_DIR")));
  }
}

TEST_F(RuntimeFolder, RefusesALinkAndAFile) {
  const std::string link = folder() + "/link";
  std::filesystem::create_directory(folder() + "/target");
  chmod((folder() + "/target").c_str(), 0700);
  std::filesystem::create_directory_symlink(folder() + "/target", link);
  EXPECT_THAT(fault_of(link), HasSubstr("link"));
  write(folder() + "/file", "");
  EXPECT_THAT(fault_of(folder() + "/file"), HasSubstr("not a folder"));
  EXPECT_THAT(fault_of(folder() + "/missing/new"), HasSubstr("No such file"));
}

TEST_F(RuntimeFolder, RefusesAFolderOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  const std::string path = folder() + "/given";
  mkdir(path.c_str(), 0700);
  ASSERT_EQ(chown(path.c_str(), 12345, 12345), 0);
  EXPECT_THAT(fault_of(path), HasSubstr("another user"));
}

TEST_F(RuntimeFolder, TakesTheRuntimeFolderOnlyWhenItIsPrivate) {
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

}  // namespace
}  // namespace cohort::launch
