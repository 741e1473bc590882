#include "network/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "network/certificates.h"
#include "network/link_pair.h"
#include "network/secret_file.h"

namespace cohort::network {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Token, IsLongAndNeverTheSame) {
  EXPECT_TRUE(is_token(make_token()));
  EXPECT_NE(make_token(), make_token());
  EXPECT_EQ(make_token().size(), 64);
  for (const char* text : {"", "secret", "0123456789abcdef"}) EXPECT_FALSE(is_token(text));
  EXPECT_FALSE(is_token(std::string(64, 'g')));
  EXPECT_FALSE(is_token(std::string(65, 'a')));
}

TEST(Token, IsReadOnlyFromAFileThatIsItsOwnersAlone) {
  const test::PrivateFolder folder;
  const fs::path file = fs::path(folder.path()) / "token";
  const std::string token = make_token();
  write_secret_file(file, token + "\n");
  EXPECT_EQ(read_token(file), token);
  EXPECT_THROW(write_secret_file(file, "another"), FileError);
  EXPECT_EQ(read_token(file), token);

  ::chmod(file.c_str(), 0640);
  EXPECT_THAT(message_of([&] { read_token(file); }), HasSubstr("chmod 600"));
  ::chmod(file.c_str(), 0604);
  EXPECT_THAT(message_of([&] { read_token(file); }), HasSubstr("chmod 600"));
  EXPECT_THAT(message_of([&] { read_token(folder.path() + "/none"); }), HasSubstr("No such file"));
  EXPECT_THAT(message_of([&] { read_token(folder.path()); }), HasSubstr("not a file"));
  const fs::path other = fs::path(folder.path()) / "other";
  write_secret_file(other, "hello\n");
  EXPECT_THAT(message_of([&] { read_token(other); }), HasSubstr("holds no token"));
  const fs::path large = fs::path(folder.path()) / "large";
  write_secret_file(large, std::string(5000, 'a'));
  EXPECT_THAT(message_of([&] { read_token(large); }), HasSubstr("too long"));
}

TEST(Credentials, AreNeededForEveryAddressThatOthersReach) {
  const Credentials none;
  const Credentials token{.token = std::string(64, 'a')};
  const Credentials insecure{.insecure = true};
  const Credentials always{.token = std::string(64, 'a'), .always = true};
  for (const char* text : {"127.0.0.1:1", "[::1]:1", "localhost:1", "unix:/a"}) {
    const Address address = parse_address(text);
    EXPECT_FALSE(wants_tls(none, address));
    EXPECT_EQ(wants_tls(token, address), !address.is_unix());  // other users reach ports
    EXPECT_TRUE(wants_tls(always, address));
  }
  for (const char* text : {"0.0.0.0:1", "[::]:1", "10.0.0.7:1", "192.0.2.2:0"}) {
    const Address address = parse_address(text);
    EXPECT_THAT(
        message_of([&] { wants_tls(none, address); }),
        AllOf(HasSubstr("COHORT_TOKEN"), HasSubstr("--token-file"), HasSubstr("`cohort token`"),
              HasSubstr("--tls-dir"), HasSubstr("--insecure"), HasSubstr(address.text())));
    EXPECT_TRUE(wants_tls(token, address));
    EXPECT_FALSE(wants_tls(insecure, address));
  }
}

TEST(Credentials, NeitherEndStartsWithoutThemAcrossTheNetwork) {
  boost::asio::io_context io;
  EXPECT_THROW(listen(io, {.address = parse_address("0.0.0.0:0"), .self = test::server(0)}, {}),
               ConfigError);
  EXPECT_THROW(connect(io,
                       {.address = parse_address("192.0.2.9:1"),
                        .self = test::worker(0),
                        .peer = test::server(0)},
                       deadline_in(std::chrono::seconds(1)), {}, {}),
               ConfigError);
  Credentials weak{.token = "secret", .always = true};
  EXPECT_THROW(
      listen(
          io,
          {.address = parse_address("127.0.0.1:0"), .self = test::server(0), .credentials = weak},
          {}),
      ConfigError);
}

TEST(Authority, WritesFilesForTheirOwnerAlone) {
  const test::PrivateFolder folder;
  const fs::path root = fs::path(folder.path()) / "tls";
  make_authority(root, job_id_of("test"), 1, 2);
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    struct stat about {};
    ASSERT_EQ(::stat(entry.path().c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, entry.is_directory() ? 0700U : 0600U) << entry.path();
    if (!entry.is_directory()) found.push_back(fs::relative(entry.path(), root).string());
  }
  std::sort(found.begin(), found.end());
  EXPECT_THAT(found, ::testing::ElementsAre("authority.pem", "server-0/authority.pem",
                                            "server-0/certificate.pem", "server-0/key.pem",
                                            "worker-0/authority.pem", "worker-0/certificate.pem",
                                            "worker-0/key.pem", "worker-1/authority.pem",
                                            "worker-1/certificate.pem", "worker-1/key.pem"));
  for (const std::string& name : found) {
    const bool holds_key =
        read_secret_file(root / name, 1 << 16).find("PRIVATE") != std::string::npos;
    EXPECT_EQ(holds_key, fs::path(name).filename() == "key.pem") << name;
  }
  EXPECT_THROW(make_authority(root, job_id_of("test"), 1, 2), FileError);  // nothing is replaced
}

TEST(Authority, NamesProcessesInOneWayOnly) {
  const Identity identity = test::server(12);
  const std::string uri = certificate_uri(identity);
  EXPECT_EQ(uri, "cohort:job/" + to_text(identity.job) + "/role/server/rank/12");
  EXPECT_EQ(parse_certificate_uri(uri), identity);
  const std::string start = "cohort:job/" + to_text(identity.job);
  for (const std::string& wrong :
       {std::string(), start, start + "/role/server/rank/", start + "/role/server/rank/012",
        start + "/role/server/rank/-1", start + "/role/boss/rank/1", start + "/role/server/rank/1/",
        start + "/role/server/rank/99999999999", "http" + uri.substr(6),
        std::string("cohort:job/00/role/server/rank/1")}) {
    EXPECT_EQ(parse_certificate_uri(wrong), std::nullopt) << wrong;
  }
}

}  // namespace
}  // namespace cohort::network
