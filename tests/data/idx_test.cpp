#include "data/idx.h"

#include <sys/resource.h>

#include "core/error.h"
#include "core/random.h"
#include "data/support.h"

namespace cohort::data::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string refusal(const ByteVector& bytes) {
  return message_of<FileError>([&] { parse_idx(bytes, "some-file"); });
}

TEST(Idx, ReadsAPlainFileAndItsCompressedTwin) {
  const ByteVector plain = idx({2, 3}, {1, 2, 3, 4, 5, 6});
  for (const ByteVector& bytes : {plain, gzip(plain)}) {
    const IdxArray array = parse_idx(bytes, "x");
    EXPECT_THAT(array.dimensions, ElementsAre(2, 3));
    EXPECT_THAT(array.values, ElementsAre(1, 2, 3, 4, 5, 6));
    EXPECT_THAT(parse_idx_dimensions(bytes, "x"), ElementsAre(2, 3));
  }
}

TEST(Idx, ReadsAFileOfTwoGzipMembers) {
  const ByteVector plain = idx({6}, {1, 2, 3, 4, 5, 6});
  ByteVector bytes = gzip(ByteVector(plain.begin(), plain.begin() + 5));
  const ByteVector second = gzip(ByteVector(plain.begin() + 5, plain.end()));
  bytes.insert(bytes.end(), second.begin(), second.end());
  EXPECT_THAT(parse_idx(bytes, "x").values, ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(Idx, EveryTruncationIsRefusedAndNamesTheFile) {
  const ByteVector plain = idx({2, 3}, {1, 2, 3, 4, 5, 6});
  for (const ByteVector& bytes : {plain, gzip(plain)}) {
    for (std::size_t n = 0; n < bytes.size(); ++n) {
      EXPECT_THAT(refusal(ByteVector(bytes.begin(), bytes.begin() + static_cast<long>(n))),
                  HasSubstr("some-file: "))
          << n << " of " << bytes.size();
    }
  }
}

TEST(Idx, AFileLongerThanItsHeaderSaysIsRefused) {
  ByteVector plain = idx({3}, {1, 2, 3, 4});
  EXPECT_THAT(refusal(plain), HasSubstr("longer than its header"));
  EXPECT_THAT(refusal(gzip(plain)), HasSubstr("longer than its header"));
  ByteVector padded = gzip(idx({3}, {1, 2, 3}));
  padded.push_back(0);
  EXPECT_NE(refusal(padded), "");
}

TEST(Idx, WrongMagicTypeAndRankAreRefused) {
  EXPECT_THAT(refusal({1, 0, 8, 1, 0, 0, 0, 1, 7}), HasSubstr("not an idx file"));
  EXPECT_THAT(refusal({0, 0, 13, 1, 0, 0, 0, 1, 7}), HasSubstr("type 13"));
  EXPECT_THAT(refusal({0, 0, 8, 0, 7}), HasSubstr("dimensions"));
  EXPECT_THAT(refusal({0, 0, 8, 9, 7}), HasSubstr("dimensions"));
  EXPECT_THAT(refusal(idx({0}, {})), HasSubstr("dimension is 0"));
}

TEST(Idx, AHeaderThatPromisesTooMuchAllocatesNothing) {
  EXPECT_THAT(refusal(idx({0xffffffff, 0xffffffff, 0xffffffff}, {})), HasSubstr("2 GiB"));
  EXPECT_THAT(refusal(idx({1U << 30}, {1, 2, 3})), HasSubstr("truncated"));
  EXPECT_THAT(refusal(gzip(idx({1U << 30}, {1, 2, 3}))), HasSubstr("truncated"));
}

// Long enough that it could hold what its header declares, if it were all zeros.
TEST(Idx, ACompressedFileTakesMemoryForWhatItHolds) {
  ByteVector noise(2'200'000);
  RandomStream random(1);
  for (std::uint8_t& value : noise) value = static_cast<std::uint8_t>(random());
  const ByteVector file = gzip(idx({2'000'000'000}, noise));
  const auto peak_kib = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const auto before = peak_kib();
  EXPECT_THAT(refusal(file), HasSubstr("found 2200000"));
  EXPECT_LT(peak_kib() - before, 512 << 10);
}

TEST(Idx, NoFlippedBitOfAGzipFileGoesUnnoticedInItsData) {
  const ByteVector good = gzip(idx({2, 3}, {1, 2, 3, 4, 5, 6}));
  int unnoticed = 0;
  // The first ten bytes are gzip's own header, whose time stamp and system mean nothing.
  for (std::size_t i = 10; i < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      ByteVector bad = good;
      bad[i] = static_cast<std::uint8_t>(bad[i] ^ (1 << bit));
      // A few bits between the deflate data and the checksum are padding.
      if (refusal(bad).empty()) {
        EXPECT_THAT(parse_idx(bad, "x").values, ElementsAre(1, 2, 3, 4, 5, 6))
            << "byte " << i << " bit " << bit;
        ++unnoticed;
      }
    }
  }
  EXPECT_LT(unnoticed, 8);
}

TEST(Idx, ALabelOutOfRangeNamesFileAndRecord) {
  const TemporaryFolder folder;
  const auto images = folder.write("images", idx({3, 1, 1}, {1, 2, 3}));
  const auto labels = folder.write("labels", idx({3}, {0, 9, 10}));
  const std::string message = message_of<FileError>([&] { read_idx_images(images, labels, 10); });
  EXPECT_THAT(message, HasSubstr(labels.string()));
  EXPECT_THAT(message, HasSubstr("record 2 has label 10"));
}

TEST(Idx, ImagesAndLabelsMustAgreeInNumberAndRank) {
  const TemporaryFolder folder;
  const auto images = folder.write("images", idx({3, 1, 1}, {1, 2, 3}));
  const auto labels = folder.write("labels", idx({2}, {0, 9}));
  EXPECT_THAT(message_of<FileError>([&] { read_idx_images(images, labels, 10); }),
              HasSubstr("2 labels"));
  EXPECT_THAT(message_of<FileError>([&] { read_idx_images(labels, labels, 10); }),
              HasSubstr("expected 3"));
  EXPECT_THAT(message_of<FileError>([&] { read_idx_images(images, images, 10); }),
              HasSubstr("expected 1"));
}

TEST(Idx, AMissingFileAndAFolderAreNamed) {
  const TemporaryFolder folder;
  EXPECT_THAT(message_of<FileError>([&] { read_idx(folder.path() / "none"); }),
              HasSubstr((folder.path() / "none").string()));
  EXPECT_THAT(message_of<FileError>([&] { read_idx(folder.path()); }), HasSubstr("regular file"));
}

}  // namespace
}  // namespace cohort::data::test
