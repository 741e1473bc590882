// A folder of mode 0700 for the sockets of a test's processes.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace cohort::launch {

class PrivateTestFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/cohort-test-XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

}  // namespace cohort::launch
