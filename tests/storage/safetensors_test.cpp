#include "storage/safetensors.h"

#include <gmock/gmock.h>

#include <cstdio>

#include "storage_fixture.h"

namespace cohort::storage {
namespace {

using test::TemporaryFolder;
using testing::ElementsAre;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// Written out by hand from the format's description: two arrays and a note.
const std::string kGolden = std::string("\x90\0\0\0\0\0\0\0", 8) +
                            R"({"__metadata__":{"by":"hand"},)"
                            R"("b":{"dtype":"I16","shape":[2],"data_offsets":[0,4]},)"
                            R"("a":{"dtype":"F32","shape":[1,1],"data_offsets":[4,8]}})" +
                            std::string(6, ' ') + std::string("\x01\0\xff\xff\0\0\x80\x3f", 8);

TEST(Safetensors, AHandWrittenFileIsRead) {
  const ParsedSafetensors parsed = parse_safetensors(bytes_of(kGolden));
  ASSERT_EQ(parsed.tensors.size(), 2U);
  EXPECT_EQ(parsed.tensors[0].name, "b");
  EXPECT_EQ(parsed.tensors[0].dtype, DType::kI16);
  EXPECT_THAT(parsed.tensors[0].shape, ElementsAre(2));
  EXPECT_EQ(parsed.tensors[1].name, "a");
  EXPECT_THAT(parsed.tensors[1].shape, ElementsAre(1, 1));
  std::int16_t b[2];
  std::memcpy(b, parsed.tensors[0].bytes.data(), sizeof b);
  EXPECT_THAT(b, ElementsAre(1, -1));
  float a = 0;
  std::memcpy(&a, parsed.tensors[1].bytes.data(), sizeof a);
  EXPECT_EQ(a, 1.0F);
  EXPECT_EQ(parsed.metadata.at("by"), "hand");
}

TEST(Safetensors, TheWriterMakesExactlyTheHandWrittenFile) {
  const TemporaryFolder folder;
  const std::string_view data = std::string_view(kGolden).substr(kGolden.size() - 8);
  const std::vector<TensorView> tensors = {{"b", DType::kI16, {2}, bytes_of(data.substr(0, 4))},
                                           {"a", DType::kF32, {1, 1}, bytes_of(data.substr(4))}};
  save_safetensors(folder / "x", tensors, {{"by", "hand"}});
  EXPECT_EQ(read_text_file(folder / "x", 1 << 20), kGolden);
}

TEST(Safetensors, EveryTypeAndShapeComesBackAsWritten) {
  const TemporaryFolder folder;
  std::vector<Bytes> storage;
  std::vector<TensorView> tensors;
  RandomStream random(1, "round trip");
  storage.reserve(100);
  for (const DType dtype : {DType::kBool, DType::kF64, DType::kF32, DType::kF16, DType::kBF16,
                            DType::kI64, DType::kI32, DType::kI16, DType::kI8, DType::kU8}) {
    for (const std::vector<std::int64_t>& shape :
         std::vector<std::vector<std::int64_t>>{{}, {0}, {1}, {3, 5}, {2, 0, 4}, {1, 2, 3, 4}}) {
      Bytes& bytes = storage.emplace_back(array_bytes(dtype, shape).value());
      for (std::byte& b : bytes) b = static_cast<std::byte>(random() & 0xff);
      tensors.push_back(
          {std::string(dtype_name(dtype)) + " \"\n\xc3\xa9" + std::to_string(tensors.size()), dtype,
           shape, bytes});
    }
  }
  save_safetensors(folder / "x", tensors);
  SafetensorsFile opened = SafetensorsFile::open(folder / "x");
  const SafetensorsFile file = std::move(opened);
  ASSERT_EQ(file.tensors().size(), tensors.size());
  for (const TensorView& expected : tensors) {
    const TensorView* found = file.find(expected.name);
    ASSERT_NE(found, nullptr) << expected.name;
    EXPECT_TRUE(test::same_tensors({*found}, {expected})) << expected.name;
  }
  EXPECT_EQ(file.find("none"), nullptr);
}

TEST(Safetensors, DataBeginsAtAMultipleOfEightBytes) {
  const TemporaryFolder folder;
  for (std::size_t length = 0; length < 9; ++length) {
    const std::vector<TensorView> tensors = {{std::string(length, 'n'), DType::kU8, {0}, {}}};
    save_safetensors(folder / "x", tensors);
    EXPECT_EQ(std::filesystem::file_size(folder / "x") % 8, 0U);
    EXPECT_EQ(SafetensorsFile::open(folder / "x").tensors().size(), 1U);
  }
}

TEST(Safetensors, AFileMayHaveNoTensors) {
  const TemporaryFolder folder;
  save_safetensors(folder / "x", {});
  EXPECT_TRUE(SafetensorsFile::open(folder / "x").tensors().empty());
}

TEST(Safetensors, NamesOfTypesAreThoseOfTheFormat) {
  for (const char* name : {"F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL"}) {
    ASSERT_TRUE(dtype_from_name(name).has_value()) << name;
    EXPECT_EQ(dtype_name(*dtype_from_name(name)), name);
  }
  EXPECT_FALSE(dtype_from_name("f32").has_value());
}

TEST(Safetensors, LengthsThatCannotBeCountedAreNothing) {
  EXPECT_EQ(array_bytes(DType::kF64, std::vector<std::int64_t>{3, 5}), 120U);
  EXPECT_EQ(array_bytes(DType::kF64, std::vector<std::int64_t>{1LL << 60}), std::nullopt);
  EXPECT_EQ(array_bytes(DType::kU8, std::vector<std::int64_t>{1LL << 32, 1LL << 32}), std::nullopt);
  EXPECT_EQ(array_bytes(DType::kU8, std::vector<std::int64_t>{-1, -1}), std::nullopt);
}

TEST(Safetensors, AnIndependentReaderAgrees) {
  if (!std::filesystem::exists("/usr/bin/python3")) GTEST_SKIP() << "no /usr/bin/python3";
  const TemporaryFolder folder;
  const float weights[] = {1.5F, -2.0F, 0.25F};
  const std::int64_t count[] = {-7};
  const std::uint8_t mask[] = {1, 0, 1};
  const std::vector<TensorView> tensors = {
      {"mask", DType::kBool, {3}, std::as_bytes(std::span(mask))},
      {"weights", DType::kF32, {1, 3}, std::as_bytes(std::span(weights))},
      {"count", DType::kI64, {}, std::as_bytes(std::span(count))}};
  save_safetensors(folder / "x", tensors, {{"made", "here"}});
  const std::string command = "/usr/bin/python3 " COHORT_STORAGE_TESTS "/read_safetensors.py " +
                              (folder / "x").string() + " > " + (folder / "out").string();
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(read_text_file(folder / "out", 1 << 20),
            "metadata {'made': 'here'}\n"
            "mask BOOL [3] (True, False, True)\n"
            "weights F32 [1, 3] (1.5, -2.0, 0.25)\n"
            "count I64 [] (-7,)\n");
}

}  // namespace
}  // namespace cohort::storage
