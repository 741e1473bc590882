#include "report/text.h"

#include <gtest/gtest.h>

namespace cohort::report {
namespace {

const std::string kReplacement = "\xEF\xBF\xBD";

TEST(Presentable, LeavesGoodTextAlone) {
  for (const std::string text :
       {"plain & <simple>", "na\xC3\xAFve", "\xE6\xB1\x89\xE5\xAD\x97", "\xF0\x9F\x98\x80", ""}) {
    EXPECT_EQ(presentable(text), text);
  }
}

TEST(Presentable, ReplacesWhatXmlAndFontsRefuse) {
  EXPECT_EQ(presentable("a\nb\tc"), "a b c");
  EXPECT_EQ(presentable(std::string("a\0b", 3)), "a" + kReplacement + "b");
  EXPECT_EQ(presentable("a\x01\x7F"), "a" + kReplacement + kReplacement);
  EXPECT_EQ(presentable("\xFF"), kReplacement);
  EXPECT_EQ(presentable("\xC0\xAF"), kReplacement + kReplacement) << "'/' in two bytes";
  EXPECT_EQ(presentable("\xE6\xB1"), kReplacement + kReplacement) << "cut off";
  EXPECT_EQ(presentable("\xED\xA0\x80"), kReplacement + kReplacement + kReplacement) << "surrogate";
  EXPECT_EQ(presentable("\xEF\xBF\xBF"), kReplacement) << "U+FFFF";
  EXPECT_EQ(presentable("\xF4\x90\x80\x80").substr(0, 3), kReplacement) << "beyond Unicode";
}

TEST(TextWidth, GrowsWithTextAndSize) {
  EXPECT_EQ(text_width("", 10), 0);
  EXPECT_LT(text_width("iiii", 10), text_width("mmmm", 10));
  EXPECT_DOUBLE_EQ(text_width("abc", 20), 2 * text_width("abc", 10));
  EXPECT_GT(text_width("abc", 10, true), text_width("abc", 10));
  EXPECT_GE(text_width("\xE6\xB1\x89", 10), 10);
}

TEST(Shortened, CutsOnlyWhatDoesNotFit) {
  const std::string text = "a rather long na\xC3\xAFve label";
  EXPECT_EQ(shortened(text, text_width(text, 12), 12), text);
  for (double width = 15; width < text_width(text, 12); width += 1.7) {
    const std::string cut = shortened(text, width, 12);
    EXPECT_LE(text_width(cut, 12), width);
    EXPECT_EQ(presentable(cut), cut) << "cut inside a character";
    EXPECT_TRUE(cut.ends_with("\xE2\x80\xA6"));
  }
  EXPECT_EQ(shortened("abc", 0, 12), "\xE2\x80\xA6");
}

TEST(Wrapped, FillsLinesAndKeepsEveryWord) {
  const std::string text = "the quick brown fox jumps over the lazy dog";
  for (const double width : {60.0, 90.0, 150.0, 1000.0}) {
    std::string joined;
    for (const std::string& line : wrapped(text, width, {.size = 12})) {
      EXPECT_LE(text_width(line, 12), width);
      joined += (joined.empty() ? "" : " ") + line;
    }
    EXPECT_EQ(joined, text);
  }
  EXPECT_EQ(wrapped("", 50, {}), std::vector<std::string>{""});
}

TEST(Wrapped, BreaksWordsThatAreTooLong) {
  for (const bool monospace : {false, true}) {
    std::string joined;
    for (const std::string& line :
         wrapped(std::string(50, 'm') + "\xC3\xAF", 40, {.size = 10, .monospace = monospace})) {
      EXPECT_EQ(presentable(line), line) << "cut inside a character";
      joined += line;
    }
    EXPECT_EQ(joined, std::string(50, 'm') + "\xC3\xAF");
  }
}

}  // namespace
}  // namespace cohort::report
