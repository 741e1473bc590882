#include "metrics/json_lines_sink.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/clock.h"
#include "metrics/sample_records.h"

#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || \
    __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define COHORT_TEST_SANITIZED 1
#else
#define COHORT_TEST_SANITIZED 0
#endif

namespace cohort::metrics {
namespace {

template <class Record>
std::string line_of(const Record& record) {
  std::string text;
  JsonLinesSink sink([&](std::string_view line) { text += line; });
  sink.record(record);
  return text;
}

TEST(JsonLinesSink, WritesWhatAnIndependentReaderUnderstands) {
  const std::string line = line_of(sample_step());
  ASSERT_EQ(line.back(), '\n');
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  const nlohmann::json object = nlohmann::json::parse(line);
  EXPECT_EQ(object.size(), 22U);
  EXPECT_EQ(object["type"], "step");
  EXPECT_EQ(object["time_seconds"], 12.125);
  EXPECT_EQ(object["rank"], 3);
  EXPECT_EQ(object["step"], 1200);
  EXPECT_EQ(object["loss"], 0.1 + 0.2);
  EXPECT_EQ(object["lr"], 1e-5);
  EXPECT_EQ(object["bytes_sent"], 18446744073709551615U);
  EXPECT_EQ(object["consensus_distance"], 1e-9);
}

TEST(JsonLinesSink, KeepsQuotesLineBreaksAndForeignBytesInsideOneLine) {
  const std::string line = line_of(sample_event());
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  EXPECT_EQ(nlohmann::json::parse(line)["detail"], sample_event().detail);

  EventRecord foreign = sample_event();
  foreign.detail = "broken \xff\xfe utf-8";
  EXPECT_TRUE(nlohmann::json::accept(line_of(foreign)));
}

TEST(JsonLinesSink, WritesNullForWhatIsNotANumber) {
  StepRecord record = sample_step();
  record.loss = std::numeric_limits<double>::quiet_NaN();
  record.lr = std::numeric_limits<double>::infinity();
  record.staleness = -std::numeric_limits<double>::infinity();
  record.consensus_distance.reset();
  const nlohmann::json object = nlohmann::json::parse(line_of(record));
  EXPECT_TRUE(object["loss"].is_null());
  EXPECT_TRUE(object["lr"].is_null());
  EXPECT_TRUE(object["staleness"].is_null());
  EXPECT_FALSE(object.contains("consensus_distance"));

  const auto back = parse_record(line_of(record));
  ASSERT_TRUE(back.has_value());
  EXPECT_TRUE(std::isnan(std::get<StepRecord>(*back).loss));
  EXPECT_FALSE(std::get<StepRecord>(*back).consensus_distance.has_value());
}

TEST(ParseRecord, GivesBackEveryFieldOfEveryKind) {
  EXPECT_EQ(parse_record(line_of(sample_step())), AnyRecord(sample_step()));
  EXPECT_EQ(parse_record(line_of(sample_evaluation())), AnyRecord(sample_evaluation()));
  EXPECT_EQ(parse_record(line_of(sample_event())), AnyRecord(sample_event()));
}

TEST(ParseRecord, IgnoresUnknownFieldsAndTakesDefaultsForMissingOnes) {
  const auto parsed = parse_record(R"({"type":"step","rank":4,"humidity":[1,{"a":2}]})");
  StepRecord expected;
  expected.rank = 4;
  EXPECT_EQ(parsed, AnyRecord(expected));
}

TEST(ParseRecord, RefusesATornLineAtEveryLength) {
  const std::string line = line_of(sample_step());
  for (std::size_t length = 0; length + 1 < line.size(); ++length) {
    EXPECT_FALSE(parse_record(std::string_view(line).substr(0, length)).has_value()) << length;
  }
  EXPECT_TRUE(parse_record(std::string_view(line).substr(0, line.size() - 1)).has_value());
}

TEST(ParseRecord, RefusesWhatIsNotOurs) {
  for (const char* line :
       {"", "null", "[]", "7", "\"step\"", "{}", R"({"type":7})", R"({"type":"weather"})",
        R"({"type":"step","rank":"three"})", R"({"type":"step","rank":1.5})",
        R"({"type":"step","rank":99999999999})", R"({"type":"step","bytes_sent":-1})",
        R"({"type":"step","loss":"nan"})", R"({"type":"step","step":18446744073709551615})",
        R"({"type":"event","event":5})", "{\"type\":\"step\"}{\"type\":\"step\"}"}) {
    EXPECT_FALSE(parse_record(line).has_value()) << line;
  }
  EXPECT_FALSE(parse_record(std::string(100000, '[')).has_value());
}

TEST(JsonLinesSink, RecordsAStepInMicroseconds) {
  constexpr double kLimitSeconds = COHORT_TEST_SANITIZED ? 200e-6 : 10e-6;
  std::size_t bytes = 0;
  JsonLinesSink sink([&](std::string_view line) { bytes += line.size(); });
  const StepRecord record = sample_step();
  double best = 1;
  for (int batch = 0; batch < 5; ++batch) {
    const auto start = Clock::now();
    for (int i = 0; i < 1000; ++i) sink.record(record);
    best = std::min(best, seconds_between(start, Clock::now()) / 1000);
  }
  RecordProperty("nanoseconds", static_cast<int>(best * 1e9));
  EXPECT_LT(best, kLimitSeconds);
  EXPECT_GT(bytes, 0U);
}

}  // namespace
}  // namespace cohort::metrics
