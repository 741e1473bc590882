#include "core/text.h"

#include <gmock/gmock.h>

namespace cohort {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Text, JoinPutsTheSeparatorBetween) {
  EXPECT_EQ(join({}, ", "), "");
  EXPECT_EQ(join(std::vector<std::string>{"a"}, ", "), "a");
  EXPECT_EQ(join(std::vector<std::string>{"a", "b", "c"}, ", "), "a, b, c");
}

TEST(Text, SplitKeepsEmptyPartsButNotAnEmptyText) {
  EXPECT_THAT(split("", ','), IsEmpty());
  EXPECT_THAT(split("a", ','), ElementsAre("a"));
  EXPECT_THAT(split("a,,b,", ','), ElementsAre("a", "", "b", ""));
}

TEST(Text, SplitUndoesJoin) {
  const std::vector<std::string> parts = {"top-k", "sign", "none"};
  EXPECT_EQ(split(join(parts, ";"), ';'), parts);
}

TEST(Text, NearestFindsTheSlipAndLeavesStrangersAlone) {
  const std::vector<std::string> known = {"all-reduce", "gossip", "choco"};
  EXPECT_EQ(nearest("gosip", known), "gossip");
  EXPECT_EQ(nearest("allreduce", known), "all-reduce");
  EXPECT_EQ(nearest("choco", known), "choco");
  EXPECT_EQ(nearest("federated", known), "");
  EXPECT_EQ(nearest("x", {}), "");
}

TEST(Text, UnknownNameSuggestsAndLists) {
  const std::vector<std::string> known = {"gossip", "choco"};
  EXPECT_EQ(unknown_name("method", "gosip", known),
            "unknown method 'gosip'; did you mean 'gossip'?\nknown: gossip, choco");
  EXPECT_EQ(unknown_name("method", "zzzzzz", known),
            "unknown method 'zzzzzz'\nknown: gossip, choco");
}

}  // namespace
}  // namespace cohort
