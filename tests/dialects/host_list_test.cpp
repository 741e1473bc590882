#include "dialects/host_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace cohort::dialects {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string host_list_refusal(const std::string& text) {
  try {
    parse_hosts("--hosts", text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(HostList, HasAddressesSeparatedByCommas) {
  EXPECT_THAT(parse_hosts("--hosts", "10.10.10.94:2222"), ElementsAre("10.10.10.94:2222"));
  EXPECT_THAT(parse_hosts("--hosts", "a:1, b-c.example:65535 ,[::1]:22"),
              ElementsAre("a:1", "b-c.example:65535", "[::1]:22"));
  EXPECT_THAT(parse_hosts("--hosts", "a:1,a:1", Repeats::kAllowed), ElementsAre("a:1", "a:1"));
}

TEST(HostList, SaysWhatIsWrongWithTheRest) {
  for (const char* text : {"", "a", "a:", ":1", "a:0", "a:65536", "a:x", "a:1,", "a b:1", "::1:22",
                           "a:1;b:2", "tcp://a:1"}) {
    EXPECT_THAT(host_list_refusal(text), HasSubstr("--hosts takes addresses separated by commas"))
        << text;
  }
  EXPECT_THAT(host_list_refusal("a:1,b:1,a:1"), HasSubstr("has a:1 twice"));
}

}  // namespace
}  // namespace cohort::dialects
