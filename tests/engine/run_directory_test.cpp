#include "engine/run_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "methods/settings.h"
#include "storage/storage_fixture.h"

namespace cohort::engine::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

template <class Body>
std::string refusal(Body body) {
  try {
    body();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

std::string text_of(const fs::path& path) { return storage::read_text_file(path, 1 << 20); }

TEST(RunDirectory, CountsUpTheRunsOfOneStem) {
  storage::test::TemporaryFolder folder;
  const RunDirectory first = RunDirectory::create(folder / "runs", "", "lenet-mnist", {});
  const RunDirectory second = RunDirectory::create(folder / "runs", "", "lenet-mnist", {});
  const RunDirectory other = RunDirectory::create(folder / "runs", "", "vgg11-mnist", {});
  EXPECT_EQ(first.path(), folder / "runs" / "lenet-mnist-001");
  EXPECT_EQ(second.path(), folder / "runs" / "lenet-mnist-002");
  EXPECT_EQ(other.path(), folder / "runs" / "vgg11-mnist-001");
}

TEST(RunDirectory, RefusesANameThatIsTakenOrNoName) {
  storage::test::TemporaryFolder folder;
  EXPECT_EQ(RunDirectory::create(folder.path(), "mine", "x", {}).path(), folder / "mine");
  EXPECT_THAT(refusal([&] { RunDirectory::create(folder.path(), "mine", "x", {}); }),
              HasSubstr("--resume"));
  for (const char* name : {"a/b", "..", "."}) {
    EXPECT_THAT(refusal([&] { RunDirectory::create(folder.path(), name, "x", {}); }),
                HasSubstr("--runs-dir"))
        << name;
  }
}

TEST(RunDirectory, AppearsWithItsDescriptionAndTakesOverAnEmptyFolder) {
  storage::test::TemporaryFolder folder;
  fs::create_directory(folder / "mine");
  const RunDirectory run = RunDirectory::create(folder.path(), "mine", "x", {{"id", "7"}});
  EXPECT_EQ(read_run_json(folder / "mine").at("id"), "7");
  std::vector<fs::path> all(fs::directory_iterator(folder.path()), fs::directory_iterator());
  EXPECT_EQ(all, std::vector{folder / "mine"}) << "nothing is left beside it";
  EXPECT_THAT(refusal([&] { RunDirectory::create(folder.path(), "mine", "x", {}); }),
              HasSubstr("exists already"));
  all.assign(fs::directory_iterator(folder.path()), fs::directory_iterator());
  EXPECT_EQ(all, std::vector{folder / "mine"});
}

TEST(RunDirectory, IsDiscardedOnlyWhenNothingHappenedInIt) {
  storage::test::TemporaryFolder folder;
  RunDirectory unused = RunDirectory::create(folder.path(), "a", "x", {});
  unused.metrics();
  unused.discard_if_unused();
  EXPECT_FALSE(fs::exists(folder / "a"));
  RunDirectory used = RunDirectory::create(folder.path(), "b", "x", {});
  used.metrics().record(metrics::EventRecord{.event = "start"});
  used.metrics().flush();
  used.discard_if_unused();
  EXPECT_TRUE(fs::exists(folder / "b" / "run.json"));
  RunDirectory foreign = RunDirectory::create(folder.path(), "c", "x", {});
  std::ofstream(folder / "c" / "notes.txt") << "mine";
  foreign.discard_if_unused();
  EXPECT_TRUE(fs::exists(folder / "c" / "notes.txt"));
}

TEST(RunDirectory, CannotBeMadeBelowAFile) {
  storage::test::TemporaryFolder folder;
  std::ofstream(folder / "file") << "text";
  EXPECT_THAT(storage::test::file_error(
                  [&] { RunDirectory::create(folder / "file" / "runs", "", "x", {}); }),
              HasSubstr("file"));
}

TEST(RunDirectory, BelongsToOneAtATime) {
  storage::test::TemporaryFolder folder;
  {
    RunDirectory run = RunDirectory::create(folder.path(), "r", "x", {});
    run.write_run_json({{"config", nlohmann::json::object()}});
    EXPECT_THAT(refusal([&] { RunDirectory::open(folder / "r"); }), HasSubstr("in use"));
    const RunDirectory moved = std::move(run);
    EXPECT_THAT(refusal([&] { RunDirectory::open(folder / "r"); }), HasSubstr("in use"));
  }
  EXPECT_EQ(RunDirectory::open(folder / "r").path(), folder / "r");
}

TEST(RunDirectory, OpensOnlyRuns) {
  storage::test::TemporaryFolder folder;
  EXPECT_THAT(refusal([&] { RunDirectory::open(folder.path()); }), HasSubstr("run.json"));
  EXPECT_THAT(refusal([&] { RunDirectory::open(folder / "absent"); }), HasSubstr("run.json"));
  EXPECT_THAT(refusal([&] { read_run_config(folder.path()); }), HasSubstr("run.json"));
}

TEST(RunDirectory, GivesBackTheConfigurationItWasGiven) {
  storage::test::TemporaryFolder folder;
  config::RunConfig config;
  config.model = "resnet20";
  config.lr = 0.1 + 0.2;  // not a short decimal
  config.lr_milestones = {1.5, 2};
  RunDirectory run = RunDirectory::create(folder.path(), "r", "x", {});
  run.write_run_json({{"config", methods::to_json(config)}, {"host", "h"}});
  EXPECT_EQ(read_run_config(folder / "r"), config);
}

TEST(RunDirectory, SaysWhatIsWrongWithADamagedConfiguration) {
  storage::test::TemporaryFolder folder;
  RunDirectory run = RunDirectory::create(folder.path(), "r", "x", {});
  std::ofstream(folder / "r" / "run.json") << "{\"config\": {\"model\"";
  EXPECT_THAT(refusal([&] { read_run_config(folder / "r"); }), HasSubstr("run.json"));
}

TEST(RunDirectory, IsMadeAgainWhenSomebodyRemovesIt) {
  storage::test::TemporaryFolder folder;
  RunDirectory run = RunDirectory::create(folder / "runs", "a", "", {{"config", {{"lr", 0.5}}}});
  run.metrics().record(metrics::EventRecord{.event = "start"});
  EXPECT_FALSE(run.remake_if_gone().has_value());
  const std::string before = text_of(run.path() / "run.json");
  fs::remove_all(folder / "runs");
  EXPECT_TRUE(run.remake_if_gone().has_value());
  EXPECT_FALSE(run.remake_if_gone().has_value());
  run.metrics().record(metrics::EventRecord{.event = "finish"});
  run.metrics().flush();
  EXPECT_EQ(text_of(run.path() / "run.json"), before);
  const std::string records = text_of(run.path() / "metrics.jsonl");
  EXPECT_THAT(records, HasSubstr("start"));
  EXPECT_THAT(records, HasSubstr("finish"));
  EXPECT_THAT(refusal([&] { RunDirectory::open(run.path()); }), HasSubstr("in use"));
}

TEST(RunDirectory, RewindsTheRecordsThatWillComeAgain) {
  storage::test::TemporaryFolder folder;
  RunDirectory run = RunDirectory::create(folder.path(), "r", "x", {});
  run.metrics().record(metrics::EventRecord{.event = "start"});
  run.metrics().flush();
  const std::uint64_t bytes = run.metrics_bytes();
  const std::string kept = text_of(folder / "r" / "metrics.jsonl");
  EXPECT_EQ(kept.size(), bytes);
  run.metrics().record(metrics::StepRecord{.step = 7});
  run.rewind_metrics(bytes);
  EXPECT_EQ(text_of(folder / "r" / "metrics.jsonl"), kept);
  run.metrics().record(metrics::EventRecord{.event = "finish"});
  run.metrics().flush();
  EXPECT_THAT(text_of(folder / "r" / "metrics.jsonl"), HasSubstr("finish"));
  run.rewind_metrics(1000000);  // a log that lost its end: nothing to forget
  run.rewind_metrics(0);
  EXPECT_EQ(text_of(folder / "r" / "metrics.jsonl"), "");
}

TEST(RunDirectory, WritesOneJsonObjectALine) {
  storage::test::TemporaryFolder folder;
  RunDirectory run = RunDirectory::create(folder.path(), "r", "x", {});
  run.metrics().record(metrics::StepRecord{.step = 1});
  run.metrics().record(metrics::EventRecord{.event = "a\nb"});
  run.write_summary({{"steps", 1}});
  std::ifstream file(folder / "r" / "metrics.jsonl");  // readable while the run goes on
  int lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
  }
  EXPECT_EQ(lines, 2);
  EXPECT_EQ(nlohmann::json::parse(text_of(folder / "r" / "summary.json")).at("steps"), 1);
}

}  // namespace
}  // namespace cohort::engine::test
