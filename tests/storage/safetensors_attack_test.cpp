// Files made to mislead the reader: each must be refused with a FileError and nothing worse.
#include <gmock/gmock.h>

#include "storage/safetensors.h"
#include "storage_fixture.h"

namespace cohort::storage {
namespace {

using test::file_error;
using testing::HasSubstr;

std::string with_length(std::uint64_t length, const std::string& rest) {
  std::string text;
  for (int i = 0; i < 8; ++i) text += static_cast<char>((length >> (8 * i)) & 0xff);
  return text + rest;
}

std::string file_with(const std::string& header, std::size_t data_bytes) {
  return with_length(header.size(), header + std::string(data_bytes, '\0'));
}

std::string refusal(const std::string& file) {
  return file_error([&] { parse_safetensors(std::as_bytes(std::span(file))); });
}

std::string tensor(const std::string& shape, const std::string& offsets) {
  return R"({"a":{"dtype":"U8","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}

TEST(SafetensorsAttack, TheMouldItselfIsAccepted) {
  EXPECT_EQ(refusal(file_with(tensor("[4]", "[0,4]"), 4)), "");
}

TEST(SafetensorsAttack, HeaderLengthLies) {
  EXPECT_THAT(refusal(""), HasSubstr("only 0 bytes"));
  EXPECT_THAT(refusal("1234567"), HasSubstr("only 7 bytes"));
  EXPECT_THAT(refusal(with_length(3, "{}")), HasSubstr("truncated"));
  EXPECT_THAT(refusal(with_length(100'000'001, "{}")), HasSubstr("100000000 are allowed"));
  EXPECT_THAT(refusal(with_length(~std::uint64_t{0}, "{}")), HasSubstr("truncated"));
  EXPECT_THAT(refusal(with_length(~std::uint64_t{0} - 7, "{}")), HasSubstr("truncated"));
  EXPECT_THAT(refusal(with_length(0, "")), HasSubstr("does not begin with '{'"));
  EXPECT_THAT(refusal(file_with("{}" + std::string(100'000'000, ' '), 0)),
              HasSubstr("100000000 are allowed"));
}

TEST(SafetensorsAttack, HeaderIsNotAnObjectOfTensors) {
  for (const std::string header :
       {"[]", " {}", "{", "{}x", "{\"a\":1}", "{\"a\":[]}", "{\"a\":{}}", "{\"a\":null}", "\xff",
        R"({"__metadata__":1})", R"({"__metadata__":{"a":1}})", R"({"__metadata__":[]})"}) {
    EXPECT_NE(refusal(file_with(header, 0)), "") << header;
  }
}

TEST(SafetensorsAttack, FieldsAreMissingOrUnknown) {
  for (const std::string entry :
       {R"({"shape":[1],"data_offsets":[0,1]})", R"({"dtype":"U8","data_offsets":[0,1]})",
        R"({"dtype":"U8","shape":[1]})", R"({"dtype":"U8","shape":[1],"offsets":[0,1]})",
        R"({"dtype":"U8","shape":[1],"data_offsets":[0,1],"more":1})",
        R"({"dtype":"F8","shape":[1],"data_offsets":[0,1]})",
        R"({"dtype":8,"shape":[1],"data_offsets":[0,1]})",
        R"({"dtype":"U8","shape":1,"data_offsets":[0,1]})"}) {
    EXPECT_THAT(refusal(file_with(R"({"a":)" + entry + "}", 1)), HasSubstr("tensor 'a'")) << entry;
  }
}

TEST(SafetensorsAttack, ShapesAreImpossible) {
  for (const std::string shape :
       {"[-1]", "[1.0]", "[\"1\"]", "[null]", "[9223372036854775808]", "[18446744073709551616]",
        "[9223372036854775807,2]", "[4294967296,4294967296]", "[4611686018427387904,4]", "[3]",
        "[5]", "[0]", "[[4]]", "{}"}) {
    EXPECT_NE(refusal(file_with(tensor(shape, "[0,4]"), 4)), "") << shape;
  }
  EXPECT_THAT(refusal(file_with(tensor("[4611686018427387904,4]", "[0,0]"), 0)),
              HasSubstr("more than can be counted"));
}

TEST(SafetensorsAttack, OffsetsAreImpossible) {
  for (const std::string offsets :
       {"[4,0]", "[0,5]", "[-4,0]", "[0,4.0]", "[0]", "[0,4,8]", "{}", "[\"0\",4]", "4",
        "[18446744073709551612,18446744073709551615]", "[1,5]", "[0,18446744073709551616]"}) {
    EXPECT_NE(refusal(file_with(tensor("[4]", offsets), 4)), "") << offsets;
  }
}

std::string two(const std::string& first, const std::string& second) {
  return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + first +
         R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + second + "}}";
}

TEST(SafetensorsAttack, TensorsOverlapOrLeaveHoles) {
  EXPECT_EQ(refusal(file_with(two("[4,8]", "[0,4]"), 8)), "");
  EXPECT_THAT(refusal(file_with(two("[0,4]", "[0,4]"), 4)), HasSubstr("expected 4"));
  EXPECT_THAT(refusal(file_with(two("[0,4]", "[2,6]"), 6)), HasSubstr("expected 4"));
  EXPECT_THAT(refusal(file_with(two("[0,4]", "[5,9]"), 9)), HasSubstr("expected 4"));
  EXPECT_THAT(refusal(file_with(two("[1,5]", "[5,9]"), 9)), HasSubstr("expected 0"));
  EXPECT_THAT(refusal(file_with(two("[0,4]", "[4,8]"), 9)), HasSubstr("cover 8 of 9 bytes"));
  EXPECT_THAT(refusal(file_with("{}", 1)), HasSubstr("cover 0 of 1 bytes"));
}

TEST(SafetensorsAttack, ANameOccursTwice) {
  const std::string entry = R"({"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  EXPECT_THAT(refusal(file_with(R"({"a":)" + entry + R"(,"a":)" + entry + "}", 0)),
              HasSubstr("occurs twice"));
  EXPECT_THAT(refusal(file_with(R"({"a":{"dtype":"U8","dtype":"U8","shape":[0],)"
                                R"("data_offsets":[0,0]}})",
                                0)),
              HasSubstr("occurs twice"));
}

TEST(SafetensorsAttack, NestingIsDeep) {
  EXPECT_THAT(refusal(file_with(R"({"a":)" + std::string(1 << 20, '['), 0)),
              HasSubstr("nested deeper"));
  std::string objects;
  while (objects.size() < (1 << 20)) objects += R"({"a":)";
  EXPECT_THAT(refusal(file_with(objects, 0)), HasSubstr("nested deeper"));
}

TEST(SafetensorsAttack, TheFileIsNamedInTheMessage) {
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "x.safetensors", file_with("{}", 1));
  EXPECT_THAT(file_error([&] { SafetensorsFile::open(folder / "x.safetensors"); }),
              HasSubstr((folder / "x.safetensors").string() + ": the tensors cover"));
}

}  // namespace
}  // namespace cohort::storage
