// Run directories as `cohort train` writes them, in a folder that goes away with the test.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "metrics/json_lines_sink.h"
#include "storage/folder.h"

namespace cohort::report {

class RunFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "cohort-report-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { storage::remove_tree(folder_); }

  // A run with these settings and lines of metrics.jsonl.
  std::filesystem::path write_run(const std::string& name, const std::string& config,
                                  const std::string& metrics) const {
    std::filesystem::create_directories(folder_ / name);
    std::ofstream(folder_ / name / "run.json") << "{\"config\": " << config << "}";
    std::ofstream(folder_ / name / "metrics.jsonl") << metrics;
    return folder_ / name;
  }

  template <class... Records>
  static std::string lines(const Records&... records) {
    std::string text;
    metrics::JsonLinesSink sink([&](std::string_view line) { text += line; });
    (sink.record(records), ...);
    return text;
  }

  std::filesystem::path folder_;
};

}  // namespace cohort::report
