#include "storage/json.h"

#include <gmock/gmock.h>

#include <limits>

#include "storage_fixture.h"

namespace cohort::storage {
namespace {

using nlohmann::json;
using test::file_error;
using testing::HasSubstr;

TEST(Json, MillionsOfBracketsAreRefusedNotFollowed) {
  for (const std::string opening : {"[", "{\"a\":", "[{\"a\":"}) {
    std::string bomb;
    while (bomb.size() < (4 << 20)) bomb += opening;
    EXPECT_THAT(file_error([&] { parse_json(bomb, 64); }), HasSubstr("nested deeper than 64"));
  }
}

TEST(Json, NestingUpToTheLimitIsFine) {
  EXPECT_EQ(parse_json("[[1]]", 2), json::parse("[[1]]"));
  EXPECT_THROW(parse_json("[[[1]]]", 2), FileError);
  EXPECT_EQ(parse_json("3", 0), json(3));
}

TEST(Json, KeysThatOccurTwiceAreRefusedAtAnyLevel) {
  EXPECT_THAT(file_error([] { parse_json(R"({"a":1,"b":{"c":1,"c":2}})", 64); }),
              HasSubstr(R"("c" occurs twice)"));
  EXPECT_THROW(parse_json(R"({"a":1,"\u0061":2})", 64), FileError);
  EXPECT_NO_THROW(parse_json(R"([{"a":1},{"a":{"a":2}}])", 64));
}

TEST(Json, MalformedTextIsAFileError) {
  for (const std::string text : {"", "{", "{\"a\":1}x", "nul", "\"\xff\"", "[1,]", "1e999"}) {
    EXPECT_THAT(file_error([&] { parse_json(text, 64); }), HasSubstr("not valid JSON")) << text;
  }
}

TEST(Json, ValuesThatWouldNotComeBackAreNotWritten) {
  EXPECT_EQ(format_json({{"a", 0.1}}, -1), R"({"a":0.1})");
  EXPECT_THROW(format_json({{"a", std::numeric_limits<double>::quiet_NaN()}}, -1), RunError);
  EXPECT_THROW(format_json({std::numeric_limits<double>::infinity()}, -1), RunError);
  EXPECT_THROW(format_json("\xff", -1), RunError);
}

}  // namespace
}  // namespace cohort::storage
