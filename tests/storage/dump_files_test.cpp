#include "storage/dump_files.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "storage/dump_writer.h"
#include "storage_fixture.h"

namespace cohort::storage {
namespace {

namespace fs = std::filesystem;

TEST(DumpNames, AreThoseOfTheExperiment) {
  DumpName trainer;
  trainer.worker = 3;
  trainer.epoch = 1;
  trainer.batch = 50;
  trainer.second = 12;
  EXPECT_EQ(trainer.series(), "trainer_3");
  EXPECT_EQ(trainer.stem(), "model_params_trainer_3_epoch_1_batch_50_sec_12");
  DumpName server;
  server.of_server = true;
  server.version = 7;
  server.second = 40;
  EXPECT_EQ(server.series(), "ps");
  EXPECT_EQ(server.stem(), "model_params_ps_model_version_7_sec_40");
  EXPECT_EQ(parse_dump_stem(trainer.stem()), trainer);
  EXPECT_EQ(parse_dump_stem(server.stem()), server);
}

TEST(DumpNames, TakeNothingElse) {
  for (const char* text :
       {"", "model_params_", "model_params_trainer_-1_epoch_0_batch_0_sec_0",
        "model_params_trainer_1_epoch_0_batch_0_sec_0x", "model_params_trainer_1_epoch_0_batch_0",
        "model_params_ps_model_version_99999999999999999999_sec_1",
        "model_params_ps_model_version_1_sec_", "Model_params_ps_model_version_1_sec_1"}) {
    EXPECT_EQ(parse_dump_stem(text), std::nullopt) << text;
  }
}

TEST(DumpScores, AreReadAsTheyWereWritten) {
  EXPECT_EQ(format_score({0.0412345678, 0.987, 12.3456}), "0.041235_0.987_12.3456");
  EXPECT_EQ(format_score({2, 0, 0}), "2.0_0.0_0.0");
  EXPECT_EQ(parse_score("0.0412_0.987_12.345\n"), (DumpScore{0.0412, 0.987, 12.345}));
  EXPECT_EQ(parse_score("0.3_0.9_105"), (DumpScore{0.3, 0.9, 105}));
  EXPECT_EQ(format_score({0.3, 0.9, 105, 320}), "0.3_0.9_105.0_320");
  EXPECT_EQ(parse_score("0.3_0.9_105.0_320\n"), (DumpScore{0.3, 0.9, 105, 320}));
  const auto diverged = parse_score(format_score({std::nan(""), 0.1, 3}));
  ASSERT_TRUE(diverged);
  EXPECT_TRUE(std::isnan(diverged->loss));
}

TEST(DumpScores, TakeNothingElse) {
  for (const char* text :
       {"", "0.1", "0.1_0.9", "0.1_0.9_", "0.1_1.5_3", "0.1_nan_3", "0.1_0.9_inf", "-0.1_0.9_3",
        "0.1_0.9_3_", "0.1_0.9_3_0", "0.1_0.9_3_x", "0.1_0.9_3_4_5", "a_b_c", "0.1 0.9 3"}) {
    EXPECT_EQ(parse_score(text), std::nullopt) << text;
  }
}

class DumpFolder : public ::testing::Test {
 protected:
  void touch(const std::string& path) {
    const fs::path whole = folder_.path() / path;
    fs::create_directories(whole.parent_path());
    std::ofstream(whole) << "x";
  }

  std::vector<std::string> models(const std::string& series = "trainer_0") {
    std::vector<std::string> stems;
    for (const FoundDump& dump : find_dumps(folder_.path()).dumps) {
      if (dump.has_model && dump.name.series() == series) {
        stems.push_back(std::to_string(dump.name.batch));
      }
    }
    return stems;
  }

  // Dumps batches 0, 1, ... of worker 0, each of one tensor that holds its number.
  DumpCounts dump(std::int64_t count, std::int64_t keep, std::int64_t first = 0) {
    DumpWriter writer({.root = folder_.path(), .keep = keep, .note = {}});
    for (std::int64_t batch = first; batch < first + count; ++batch) {
      auto value = std::make_shared<float>(static_cast<float>(batch));
      DumpName name;
      name.batch = batch;
      writer.write(name,
                   {{{"w", DType::kF32, {1}, std::as_bytes(std::span(value.get(), 1))}}, value});
    }
    return writer.finish();
  }

  test::TemporaryFolder folder_;
};

TEST_F(DumpFolder, IsReadWithItsForeignFilesNamed) {
  touch("dumps/trainer_0/model_params_trainer_0_epoch_0_batch_0_sec_0.safetensors");
  touch("dumps/trainer_0/model_params_trainer_0_epoch_0_batch_0_sec_0.eval");
  touch("dumps/trainer_0/model_params_trainer_1_epoch_0_batch_0_sec_0.safetensors");  // not its own
  touch("trainer_10/model_params_trainer_10_epoch_0_batch_9_sec_1.eval");
  touch("ps/model_params_ps_model_version_2_sec_1.safetensors");
  touch("ps/.tmp-model_params_ps_model_version_3_sec_1.safetensors");
  touch("ps/holiday.jpg");
  touch("checkpoints/latest");
  const FoundDumps found = find_dumps(folder_.path());
  ASSERT_EQ(found.dumps.size(), 3U);
  EXPECT_TRUE(found.dumps[0].has_model && found.dumps[0].has_score);
  EXPECT_EQ(found.dumps[1].name.worker, 10);
  EXPECT_FALSE(found.dumps[1].has_model);
  EXPECT_TRUE(found.dumps[2].name.of_server);
  ASSERT_EQ(found.foreign.size(), 2U);
  EXPECT_EQ(found.foreign[0].filename(),
            "model_params_trainer_1_epoch_0_batch_0_sec_0.safetensors");
  EXPECT_EQ(found.foreign[1].filename(), "holiday.jpg");
}

TEST_F(DumpFolder, OfNoRunIsEmpty) {
  EXPECT_TRUE(find_dumps(folder_.path() / "none").dumps.empty());
}

TEST_F(DumpFolder, HoldsAllDumpsWhenAllAreKept) {
  EXPECT_EQ(dump(5, 0).written, 5);
  EXPECT_EQ(models(), (std::vector<std::string>{"0", "1", "2", "3", "4"}));
  const auto found = find_dumps(folder_.path()).dumps.at(3);
  const SafetensorsFile file = SafetensorsFile::open(found.model());
  float value = 0;
  std::memcpy(&value, file.find("w")->bytes.data(), sizeof value);
  EXPECT_EQ(value, 3);
  EXPECT_LT(std::stod(file.metadata().at("seconds")), 60);
}

TEST_F(DumpFolder, StaysBoundedAndSpreadOverTheRun) {
  dump(14, 4);
  // 14 of them, at most 4 on a grid: every fourth, and the latest.
  EXPECT_EQ(models(), (std::vector<std::string>{"0", "4", "8", "12", "13"}));
}

TEST_F(DumpFolder, GoesOnWhereAnEarlierSittingStopped) {
  dump(3, 4);
  dump(3, 4, 3);
  EXPECT_EQ(models(), (std::vector<std::string>{"0", "2", "4", "5"}));
}

// Nothing is as fast as a loop that dumps the same model again and again.
TEST_F(DumpFolder, GetsEveryModelOfASlowDiskUnlessTheyMayBeLeftOut) {
  constexpr int kModels = 300;
  for (const bool drop : {false, true}) {
    DumpWriter writer(
        {.root = folder_.path() / (drop ? "drops" : "waits"), .drop_when_slow = drop});
    for (int batch = 0; batch < kModels; ++batch) {
      DumpName name;
      name.batch = batch;
      writer.write(name, {});
    }
    const DumpCounts counts = writer.finish();
    EXPECT_EQ(counts.written + counts.left_out, kModels);
    EXPECT_TRUE(drop || counts.left_out == 0) << counts.left_out;
  }
}

TEST_F(DumpFolder, ThatCannotBeWrittenCostsDumpsNotTraining) {
  touch("trainer_0");  // where the folder should be
  std::vector<std::string> notes;
  DumpCounts counts;
  {
    DumpWriter writer(
        {.root = folder_.path(), .note = [&](const std::string& line) { notes.push_back(line); }});
    writer.write({}, {});
    writer.write({}, {});
    counts = writer.finish();
  }
  EXPECT_EQ(counts.failed, 2);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_NE(notes[0].find("training goes on"), std::string::npos);
}

}  // namespace
}  // namespace cohort::storage
