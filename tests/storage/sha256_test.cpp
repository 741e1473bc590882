#include "storage/sha256.h"

#include <gtest/gtest.h>

#include "core/types.h"

namespace cohort::storage {
namespace {

// FIPS 180-4 examples.
TEST(Sha256, GivesThePublishedDigests) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, DoesNotDependOnHowTheBytesArePieced) {
  const Bytes bytes(1000, std::byte{7});
  const std::span<const std::byte> all(bytes);
  Sha256 hash;
  hash.update(all.first(1));
  hash.update({});
  hash.update(all.subspan(1, 998));
  hash.update(all.last(1));
  EXPECT_EQ(hash.finish(), sha256(all));
}

TEST(Sha256, HashesEachPieceInItsPlace) {
  std::vector<Bytes> storage;
  std::vector<std::span<const std::byte>> pieces;
  storage.reserve(100);
  for (std::size_t i = 0; i < 100; ++i) {
    pieces.emplace_back(storage.emplace_back(i * 37, static_cast<std::byte>(i)));
  }
  const std::vector<std::string> hashes = sha256_of_each(pieces);
  ASSERT_EQ(hashes.size(), pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) EXPECT_EQ(hashes[i], sha256(pieces[i]));
  EXPECT_TRUE(sha256_of_each({}).empty());
}

}  // namespace
}  // namespace cohort::storage
