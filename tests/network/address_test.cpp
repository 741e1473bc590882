#include "network/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "network/identity.h"

namespace cohort::network {
namespace {

using ::testing::HasSubstr;

TEST(Address, IsReadAndWritten) {
  EXPECT_EQ(parse_address("10.0.0.7:2222"), (Address{.host = "10.0.0.7", .port = 2222}));
  EXPECT_EQ(parse_address("localhost:0"), (Address{.host = "localhost", .port = 0}));
  EXPECT_EQ(parse_address("[::1]:80"), (Address{.host = "::1", .port = 80}));
  EXPECT_EQ(parse_address("host", 99), (Address{.host = "host", .port = 99}));
  EXPECT_EQ(parse_address("host:1", 99), (Address{.host = "host", .port = 1}));
  EXPECT_EQ(parse_address("::1", 99), (Address{.host = "::1", .port = 99}));
  EXPECT_EQ(parse_address("[::1]", 99), (Address{.host = "::1", .port = 99}));
  EXPECT_EQ(parse_address("unix:/run/a.sock"), (Address{.path = "/run/a.sock"}));
  for (const char* text : {"10.0.0.7:2222", "[fe80::1]:65535", "unix:/a b", "h:0"}) {
    EXPECT_EQ(parse_address(text).text(), text);
  }
  EXPECT_EQ(parse_addresses("a:1,b:2,[::1]:3").size(), 3);
}

TEST(Address, IsRefusedWithARightOneShown) {
  for (const char* text :
       {"", ":", "host", "host:", "host:x", "host:65536", "host:-1", "host:1x", ":2222", "a:b:1",
        "[::1", "[::1]x", "[host]:1", "unix:", "unix:relative", "http://host:1", "a b:1"}) {
    try {
      parse_address(text);
      ADD_FAILURE() << text;
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr("10.0.0.7:2222"));
    }
  }
  EXPECT_THROW(parse_addresses("a:1,,b:2"), ConfigError);
}

TEST(Address, KnowsWhatIsOfThisHostAlone) {
  for (const char* text : {"127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1", "unix:/a"}) {
    EXPECT_TRUE(is_of_this_host_alone(parse_address(text))) << text;
  }
  for (const char* text : {"0.0.0.0:1", "[::]:1", "10.0.0.7:1", "128.0.0.1:1", "[::2]:1"}) {
    EXPECT_FALSE(is_of_this_host_alone(parse_address(text))) << text;
  }
}

TEST(JobId, IsReadAndWritten) {
  const JobId job = job_id_of("ps_hosts=a:1,b:2");
  EXPECT_EQ(job, job_id_of("ps_hosts=a:1,b:2"));
  EXPECT_NE(job, job_id_of("ps_hosts=a:1,b:3"));
  EXPECT_EQ(parse_job_id(to_text(job)), job);
  EXPECT_EQ(to_text(job).size(), 32);
  EXPECT_NE(random_job_id(), random_job_id());
  for (const char* text :
       {"", "00", "0123456789abcdef0123456789abcdeg", "0123456789ABCDEF0123456789abcdef",
        "0123456789abcdef0123456789abcdef0"}) {
    EXPECT_THROW(parse_job_id(text), ConfigError) << text;
  }
}

}  // namespace
}  // namespace cohort::network
