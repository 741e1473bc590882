#include "dialects/native_command.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>

#include "methods/settings.h"

namespace cohort::dialects {
namespace {

using Words = std::vector<std::string>;

TEST(NativeCommand, OfTheDefaultsIsTheBareCommand) {
  EXPECT_EQ(native_command({}), (Words{"cohort", "train"}));
}

TEST(NativeCommand, NamesWhatDiffersInTheOrderOfTheTable) {
  config::RunConfig config;
  config.epochs = 3;
  config.model = "resnet50";
  config.lr_milestones = {30, 60.5};
  EXPECT_EQ(native_command(config, {"--name", "a"}),
            (Words{"cohort", "train", "--model", "resnet50", "--lr-milestones", "30,60.5",
                   "--epochs", "3", "--name", "a"}));
}

TEST(NativeCommand, WritesSwitchesAsTheyAreRead) {
  config::RunConfig config;
  config.nesterov = true;
  config.shuffle = false;
  EXPECT_EQ(native_command(config), (Words{"cohort", "train", "--no-shuffle", "--nesterov"}));
}

// Every setting, changed, and read back as the flags of `cohort train` are.
TEST(NativeCommand, GivesBackTheSameConfiguration) {
  for (const config::ConfigField& field : methods::config_fields()) {
    config::RunConfig config;
    struct Change {
      const config::ConfigField& field;
      config::SettingValue operator()(const std::string&) const {
        return field.choices.empty() ? "a b'c" : field.choices.back();
      }
      config::SettingValue operator()(std::int64_t value) const { return value + 1; }
      config::SettingValue operator()(double) const {
        return field.low < 0.1 ? 0.123456789012345 : field.low * 1.1;
      }
      config::SettingValue operator()(bool value) const { return !value; }
      config::SettingValue operator()(const std::vector<double>&) const {
        return std::vector<double>{1, std::min(2.5, field.high), 1e-9};
      }
    };
    config::set_value(config, field, std::visit(Change{field}, config::default_of(field)));
    const Words words = native_command(config);
    ASSERT_GE(words.size(), 3U) << field.name;
    const bool off = words[2] == "--no-" + field.name;
    EXPECT_EQ(words[2], (off ? "--no-" : "--") + field.name);
    config::RunConfig back;
    config::set_field(back, field, words.size() > 3 ? words[3] : off ? "false" : "true");
    EXPECT_EQ(back, config) << field.name;
  }
}

TEST(ShellLine, QuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(shell_line({"cohort", "train", "--lr", "1e-05", "../../imagenet"}),
            "cohort train --lr 1e-05 ../../imagenet");
  EXPECT_EQ(shell_line({"", "a b", "it's", "$HOME", "a*", "~"}),
            "'' 'a b' 'it'\\''s' '$HOME' 'a*' '~'");
}

// The shell itself is the judge.
TEST(ShellLine, IsTakenApartAgainByAShell) {
  const Words words = {"a b", "it's", "\"", "$(ls)", "`ls`", "\\",
                       "#",   "a;b",  "&",  "!",     "",     "x\ty"};
  const std::string line = "printf '<%s>' " + shell_line(words);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(line.c_str(), "r"), ::pclose);
  ASSERT_NE(pipe, nullptr);
  std::array<char, 4096> buffer{};
  const std::size_t read = std::fread(buffer.data(), 1, buffer.size(), pipe.get());
  std::string expected;
  for (const std::string& word : words) expected += "<" + word + ">";
  EXPECT_EQ(std::string(buffer.data(), read), expected);
}

}  // namespace
}  // namespace cohort::dialects
