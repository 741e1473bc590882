#include "storage/manifest.h"

#include <gmock/gmock.h>

#include "storage/sha256.h"
#include "storage_fixture.h"

namespace cohort::storage {
namespace {

using test::file_error;
using testing::HasSubstr;

Manifest example() {
  Manifest manifest;
  manifest.step = 1200;
  manifest.files["model.safetensors"] = {812, {{"fc.weight", {DType::kF32, {10, 20}, "ab"}}}};
  manifest.files["state.safetensors"] = {8, {}};
  manifest.state = {{"epoch", 3}, {"loss", 0.25}, {"names", {"a", "b"}}};
  return manifest;
}

std::string seal(const std::string& body) {
  return R"({"sha256":")" + sha256(body) + R"(","body":)" + body + "}\n";
}

TEST(Manifest, ComesBackAsWritten) {
  const std::string text = format_manifest(example());
  EXPECT_EQ(parse_manifest(text), example());
  const auto parsed = nlohmann::json::parse(text);
  EXPECT_EQ(parsed.at("body").at("format"), 1);
  EXPECT_EQ(parsed.at("body").at("step"), 1200);
}

// The format is pinned: a program of another version must read what this one writes.
TEST(Manifest, IsReadFromItsDocumentedText) {
  const Manifest manifest =
      parse_manifest(seal(R"({"format":1,"step":7,"files":{"m":{"bytes":9,"tensors":)"
                          R"({"w":{"dtype":"I8","shape":[],"sha256":"00"}}}},"state":null})"));
  EXPECT_EQ(manifest.step, 7);
  EXPECT_EQ(manifest.files.at("m").bytes, 9U);
  EXPECT_EQ(manifest.files.at("m").tensors.at("w"), (ManifestTensor{DType::kI8, {}, "00"}));
  EXPECT_TRUE(manifest.state.is_null());
}

TEST(Manifest, EveryFlippedBitIsNoticed) {
  const std::string text = format_manifest(example());
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string damaged = text;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_THROW(parse_manifest(damaged), FileError) << "bit " << bit;
  }
}

TEST(Manifest, EveryTruncationIsNoticed) {
  const std::string text = format_manifest(example());
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_THROW(parse_manifest(std::string_view(text).substr(0, length)), FileError) << length;
  }
  EXPECT_THROW(parse_manifest(text + "\n"), FileError);
}

TEST(Manifest, RefusesASealedBodyThatIsNoManifest) {
  for (const std::string body :
       {"1", "[]", "{}", R"({"format":1})", R"({"format":1,"step":-1,"files":{},"state":0})",
        R"({"format":1,"step":1.5,"files":{},"state":0})",
        R"({"format":1,"step":1,"files":[],"state":0})", R"({"format":1,"step":1,"files":{}})",
        R"({"format":1,"step":1,"files":{"m":{"bytes":1}},"state":0})",
        R"({"format":1,"step":1,"files":{"m":{"bytes":-1,"tensors":{}}},"state":0})",
        R"({"format":1,"step":1,"files":{"m":{"bytes":1,"tensors":{"w":3}}},"state":0})",
        R"({"format":1,"step":1,"files":{"m":{"bytes":1,"tensors":{"w":)"
        R"({"dtype":"X","shape":[],"sha256":"a"}}}},"state":0})",
        R"({"format":1,"step":1,"files":{"m":{"bytes":1,"tensors":{"w":)"
        R"({"dtype":"F32","shape":[9223372036854775808],"sha256":"a"}}}},"state":0})",
        R"({"format":1,"format":1,"step":1,"files":{},"state":0})"}) {
    EXPECT_THROW(parse_manifest(seal(body)), FileError) << body;
  }
}

TEST(Manifest, OfANewerFormatIsRefusedByThatName) {
  EXPECT_THAT(
      file_error([] { parse_manifest(seal(R"({"format":2,"step":1,"files":{},"state":0})")); }),
      HasSubstr("has format 2, this program reads format 1"));
}

TEST(Manifest, DeepStateIsRefused) {
  const std::string body = R"({"format":1,"step":1,"files":{},"state":)" +
                           std::string(1 << 20, '[') + std::string(1 << 20, ']') + "}";
  EXPECT_THAT(file_error([&] { parse_manifest(seal(body)); }), HasSubstr("nested deeper"));
}

}  // namespace
}  // namespace cohort::storage
