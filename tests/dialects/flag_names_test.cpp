#include "dialects/flag_names.h"

#include <gtest/gtest.h>

namespace cohort {
namespace {

TEST(FlagNames, AreThoseOfTheDialect) {
  const FlagNames names = {{"batch", "--batch_size"}, {"lr", "--learning_rate"}};
  EXPECT_EQ(in_words_of(names, "--batch is 5 here; --lr-gamma differs, and --lr=1"),
            "--batch_size is 5 here; the setting lr-gamma differs, and --learning_rate=1");
  EXPECT_EQ(in_words_of(names, "see --help; a--batch, a_--batch and ---batch are none"),
            "see --help; a--batch, a_--batch and ---batch are none");
  EXPECT_EQ(in_words_of({}, "--batch is 5"), "--batch is 5");
}

TEST(FlagNames, SwapNamesThatMeanSomethingElse) {
  const FlagNames names = {{"workers", "--world-size"}, {"loader-threads", "--workers"}};
  EXPECT_EQ(in_words_of(names, "--workers and --loader-threads"), "--world-size and --workers");
}

}  // namespace
}  // namespace cohort
