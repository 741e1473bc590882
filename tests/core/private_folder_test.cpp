#include "core/private_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <optional>

namespace cohort {
namespace {

namespace fs = std::filesystem;

class PrivateFolders : public ::testing::Test {
 protected:
  PrivateFolders() {
    std::string pattern = (fs::temp_directory_path() / "cohort-test-XXXXXX").string();
    parent_ = ::mkdtemp(pattern.data());
  }
  ~PrivateFolders() override {
    std::error_code ignored;
    fs::remove_all(parent_, ignored);
  }

  std::size_t count() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(parent_), fs::directory_iterator()));
  }

  fs::path parent_;
};

TEST_F(PrivateFolders, GoWithTheirOwner) {
  {
    const PrivateFolder folder(parent_, "keys");
    std::ofstream(folder.path() / "key.pem") << "secret";
    EXPECT_EQ(fs::status(folder.path()).permissions(), fs::perms::owner_all);
    EXPECT_EQ(count(), 1U);
  }
  EXPECT_EQ(count(), 0U);
}

TEST_F(PrivateFolders, ThatAKilledProcessLeftAreRemovedByTheNextOfThatKind) {
  const fs::path left = parent_ / "keys-AbCdEf";
  fs::create_directories(left / "tls");
  std::ofstream(left / "tls" / "key.pem") << "secret";
  const fs::path other = parent_ / "others-AbCdEf";
  fs::create_directory(other);
  fs::create_symlink(other, parent_ / "keys-linked");
  const PrivateFolder folder(parent_, "keys");
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(other)) << "of another kind, and a link to it";
}

TEST_F(PrivateFolders, InUseStay) {
  const PrivateFolder first(parent_, "keys");
  std::ofstream(first.path() / "key.pem") << "secret";
  const PrivateFolder second(parent_, "keys");
  EXPECT_NE(first.path(), second.path());
  EXPECT_TRUE(fs::exists(first.path() / "key.pem"));
}

}  // namespace
}  // namespace cohort
