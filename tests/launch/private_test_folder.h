// A folder of mode 0700 for the notices of a test's processes.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "core/clock.h"

namespace cohort {

class PrivateTestFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/cohort-test-XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  const std::string& folder() const { return folder_; }
  int files() const {
    return static_cast<int>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }
  // A notice has its last name, and not the one under which it is being written.
  void wait_for_files(int count) const {
    const Deadline deadline = deadline_in(std::chrono::seconds(10));
    while (Clock::now() < deadline) {
      int found = 0;
      for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
        if (entry.path().extension() == ".job") ++found;
      }
      if (found == count) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    FAIL() << "no " << count << " notices";
  }
  std::string only_file() const { return std::filesystem::directory_iterator(folder_)->path(); }
  std::string memory_named_in_notice() const {
    std::ifstream file(only_file());
    std::string title;
    std::string memory;
    std::getline(file, title);
    std::getline(file, memory);
    return memory;
  }

 private:
  std::string folder_;
};

}  // namespace cohort
